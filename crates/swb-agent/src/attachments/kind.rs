//! What a file is, as its bytes tell. Names and hints are not asked.

use imagesize::ImageType;

/// Pictures a side of which is longer are not taken by providers.
const MAX_PIXELS: usize = 8000;

/// A kind of file that can be attached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Png,
    Jpeg,
    Gif,
    Webp,
    Pdf,
    Text,
}

/// Why bytes are of no kind that can be attached.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NoKind {
    #[error("Unsupported binary attachment; use an image, PDF, or UTF-8 text file")]
    Binary,
    #[error("the image is damaged: its size cannot be read")]
    Damaged,
    #[error("the image has {width} x {height} pixels; at most {MAX_PIXELS} a side can be attached")]
    TooManyPixels { width: usize, height: usize },
}

impl Kind {
    /// The kind of these bytes.
    pub(crate) fn of(bytes: &[u8]) -> Result<Self, NoKind> {
        if let Some(picture) = picture(bytes) {
            let size = imagesize::blob_size(bytes).map_err(|_| NoKind::Damaged)?;
            let (width, height) = (size.width, size.height);
            return match (width.min(height), width.max(height)) {
                (0, _) => Err(NoKind::Damaged),
                (_, longer) if longer > MAX_PIXELS => Err(NoKind::TooManyPixels { width, height }),
                _ => Ok(picture),
            };
        }
        if bytes.starts_with(b"%PDF-") {
            // One that was cut off would make every later call of a provider fail.
            let ended = memchr::memmem::rfind(bytes, b"%%EOF").is_some();
            return if ended { Ok(Kind::Pdf) } else { Err(NoKind::Binary) };
        }
        match std::str::from_utf8(bytes) {
            Ok(text) if text.chars().all(is_plain) => Ok(Kind::Text),
            _ => Err(NoKind::Binary),
        }
    }

    pub(crate) fn media_type(self) -> &'static str {
        match self {
            Kind::Png => "image/png",
            Kind::Jpeg => "image/jpeg",
            Kind::Gif => "image/gif",
            Kind::Webp => "image/webp",
            Kind::Pdf => "application/pdf",
            Kind::Text => "text/plain",
        }
    }

    pub(crate) fn is_image(self) -> bool {
        !matches!(self, Kind::Pdf | Kind::Text)
    }
}

fn picture(bytes: &[u8]) -> Option<Kind> {
    // The first letters alone may also begin a text.
    let whole = [b"\x89PNG\r\n\x1a\n".as_slice(), b"\xff\xd8\xff", b"GIF87a", b"GIF89a", b"RIFF"];
    if !whole.iter().any(|magic| bytes.starts_with(magic)) {
        return None;
    }
    match imagesize::image_type(bytes) {
        Ok(ImageType::Png) => Some(Kind::Png),
        Ok(ImageType::Jpeg) => Some(Kind::Jpeg),
        Ok(ImageType::Gif) => Some(Kind::Gif),
        Ok(ImageType::Webp) => Some(Kind::Webp),
        _ => None,
    }
}

fn is_plain(character: char) -> bool {
    !character.is_control() || matches!(character, '\t' | '\n' | '\r' | '\x0c')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut bytes = b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".to_vec();
        bytes.extend(width.to_be_bytes());
        bytes.extend(height.to_be_bytes());
        bytes
    }

    #[test]
    fn bytes_tell_what_they_are() {
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xc0\0\x11\x08\0\x05\0\x07\x03";
        let webp = b"RIFF\x20\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x09\0\0\x13\0\0";
        for (bytes, kind) in [
            (png(3, 4).as_slice(), Kind::Png),
            (jpeg, Kind::Jpeg),
            (b"GIF89a\x05\0\x06\0\0\0", Kind::Gif),
            (webp, Kind::Webp),
            (b"%PDF-1.7\n...\n%%EOF\n", Kind::Pdf),
            ("gr\u{fc}n\r\n\tx\u{2028}".as_bytes(), Kind::Text),
            (b"GIF8 is no picture", Kind::Text),
            (b"RIFF is no picture", Kind::Text),
        ] {
            assert_eq!(Kind::of(bytes), Ok(kind), "{bytes:?}");
        }
    }

    #[test]
    fn what_no_provider_would_take_is_refused() {
        for bytes in [
            b"\x7fELF\x02".as_slice(),
            b"a\0b",
            b"\x1b[31m",
            b"\xff\xfe",
            b"%PDF-1.7 cut",
            "\u{85}".as_bytes(),
        ] {
            assert_eq!(Kind::of(bytes), Err(NoKind::Binary), "{bytes:?}");
        }
        assert_eq!(Kind::of(&png(0, 4)), Err(NoKind::Damaged));
        assert_eq!(Kind::of(&png(3, 4)[..16]), Err(NoKind::Damaged));
        assert_eq!(Kind::of(&png(8000, 8000)), Ok(Kind::Png));
        assert_eq!(Kind::of(&png(1, 8001)), Err(NoKind::TooManyPixels { width: 1, height: 8001 }));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(
            magic in prop_oneof![
                Just(b"\xff\xd8\xff".to_vec()), Just(b"\x89PNG\r\n\x1a\n".to_vec()), Just(b"GIF89a".to_vec()),
                Just(b"RIFF\0\0\0\0WEBPVP8".to_vec()), Just(b"%PDF-".to_vec()), Just(Vec::new())
            ],
            rest in proptest::collection::vec(any::<u8>(), 0..60),
        ) {
            let _ = Kind::of(&[magic, rest].concat());
        }
    }
}
