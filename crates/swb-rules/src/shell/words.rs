//! Arguments sorted into options and operands, without knowing the program's own rules.
//!
//! Errs on the side of seeing too much: a value that belongs to an option also counts as an operand, the tail of a short
//! option that looks like a path counts as one too, and a long option counts as every option it may be short for.

use super::word::Word;

/// Arguments of one program.
pub(super) struct Arguments<'a> {
    all: &'a [Word],
}

impl<'a> Arguments<'a> {
    pub(super) fn new(all: &'a [Word]) -> Self {
        Self { all }
    }

    /// All arguments whose text is known.
    pub(super) fn texts(&self) -> impl Iterator<Item = String> {
        self.all.iter().filter_map(Word::text)
    }

    /// Whether some argument may turn out to be options or operands that nobody has seen.
    pub(super) fn has_unknown(&self) -> bool {
        self.all.iter().any(|word| word.text().is_none())
    }

    /// Words that are not options.
    pub(super) fn operands(&self) -> Vec<&'a Word> {
        let mut options_ended = false;
        let mut operands = Vec::new();
        for word in self.all {
            match word.text() {
                Some(text) if text == "--" && !options_ended => options_ended = true,
                Some(text) if !options_ended && text.len() > 1 && text.starts_with('-') => {}
                _ => operands.push(word),
            }
        }
        operands
    }

    /// Paths that stand inside options: `--output=PATH`, `-oPATH`, `-d@PATH`.
    pub(super) fn paths_in_options(&self) -> Vec<String> {
        let mut paths = Vec::new();
        for text in self.texts().filter(|text| text.starts_with('-')) {
            if let Some((_, value)) = text.split_once('=') {
                paths.push(value.trim_start_matches('@').to_owned());
            } else if !text.starts_with("--")
                && let Some(start) = text.find(['/', '~', '.', '@'])
            {
                paths.push(text[start..].trim_start_matches('@').to_owned());
            }
        }
        paths
    }

    /// Whether an option is given, by its letter or by its long name (which may be cut short).
    pub(super) fn has(&self, option: &str) -> bool {
        self.texts().take_while(|text| text != "--").any(|text| is_option(&text, option))
    }

    pub(super) fn has_any(&self, options: &[&str]) -> bool {
        options.iter().any(|option| self.has(option))
    }

    /// The first operand, if its text is known.
    pub(super) fn first(&self) -> Option<String> {
        self.operands().first().and_then(|word| word.literal())
    }
}

fn is_option(text: &str, option: &str) -> bool {
    if option.starts_with("--") {
        let name = text.split_once('=').map_or(text, |(name, _)| name);
        return name.len() > 2 && name.starts_with("--") && option.starts_with(name);
    }
    let Some(cluster) = text.strip_prefix('-').filter(|cluster| !cluster.starts_with('-')) else {
        return false;
    };
    let letters = cluster.split(|c: char| !c.is_ascii_alphanumeric() && c != ':').next().unwrap_or_default();
    if option.len() == 1 { letters.contains(option) } else { letters == option }
}

/// Looks like a path rather than a plain word.
fn looks_like_path(text: &str) -> bool {
    text.starts_with(['/', '~', '.']) || text.contains('/')
}

/// Whether a word is written so that it may name a path.
pub(super) fn may_be_path(word: &Word) -> bool {
    word.text().is_none_or(|text| looks_like_path(&text) && !text.contains("://"))
}

/// What follows an option that takes its value as the next word, for each time it is given.
pub(super) fn values_of<'a>(all: &'a [Word], options: &[&str]) -> Vec<&'a Word> {
    let mut values = Vec::new();
    for (at, word) in all.iter().enumerate() {
        let Some(text) = word.text() else { continue };
        let ends_in_option = options.iter().any(|option| {
            if option.starts_with("--") {
                text == *option
            } else {
                text.starts_with('-') && !text.starts_with("--") && text.ends_with(option)
            }
        });
        if ends_in_option && let Some(value) = all.get(at + 1) {
            values.push(value);
        }
    }
    values
}
