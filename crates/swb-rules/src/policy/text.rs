//! Where something stands in a text.

/// Line and column, both from 1; a column counts characters.
pub(super) fn position(text: &str, offset: usize) -> (u32, u32) {
    let before = &text[..text.floor_char_boundary(offset.min(text.len()))];
    let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters() {
        let text = "a\nbé\nc";
        for (offset, wanted) in
            [(0, (1, 1)), (1, (1, 2)), (2, (2, 1)), (5, (2, 3)), (6, (3, 1)), (99, (3, 2))]
        {
            assert_eq!(position(text, offset), wanted, "{offset}");
        }
        assert_eq!(position(text, 4), (2, 2), "inside a character");
    }
}
