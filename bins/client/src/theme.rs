//! What the terminal can show: colours or none, more than ASCII or not.

use ratatui::style::{Color, Modifier, Style};

/// The abilities of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Theme {
    /// Nothing but ASCII is drawn.
    pub(crate) ascii: bool,
    /// Colours are used.
    pub(crate) colour: bool,
}

impl Theme {
    /// From the command line and the environment.
    pub(crate) fn detect(ascii: bool, variable: impl Fn(&str) -> Option<String>) -> Self {
        // https://no-color.org: set, and not to nothing.
        let no_colour = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { ascii: ascii || !speaks_utf8(&variable), colour: !no_colour }
    }

    /// A colour, where there are colours.
    pub(crate) fn ink(self, colour: Color) -> Style {
        if self.colour { Style::new().fg(colour) } else { Style::new() }
    }

    /// Less than the rest.
    pub(crate) fn faint(self) -> Style {
        if self.colour {
            Style::new().fg(Color::DarkGray)
        } else {
            Style::new().add_modifier(Modifier::DIM)
        }
    }

    /// More than the rest.
    pub(crate) fn strong(self, colour: Color) -> Style {
        self.ink(colour).add_modifier(Modifier::BOLD)
    }

    /// Something that must not be overlooked.
    pub(crate) fn alarm(self) -> Style {
        self.strong(Color::LightRed).add_modifier(Modifier::REVERSED)
    }

    /// One of the two.
    pub(crate) const fn pick<T: Copy>(self, sign: T, ascii: T) -> T {
        if self.ascii { ascii } else { sign }
    }

    /// Stands for what was cut off.
    pub(crate) const fn mark(self) -> &'static str {
        self.pick("…", "..")
    }
}

/// The locale of the terminal, as POSIX looks for it: the first that is set counts.
fn speaks_utf8(variable: &impl Fn(&str) -> Option<String>) -> bool {
    ["LC_ALL", "LC_CTYPE", "LANG"]
        .into_iter()
        .filter_map(variable)
        .find(|value| !value.is_empty())
        .map(|value| value.to_ascii_lowercase())
        .is_some_and(|value| value.contains("utf-8") || value.contains("utf8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn detected(ascii: bool, variables: &[(&str, &str)]) -> Theme {
        Theme::detect(ascii, |name| {
            variables.iter().find(|(of, _)| *of == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_locale_decides_about_ascii() {
        assert!(!detected(false, &[("LANG", "en_US.UTF-8")]).ascii);
        assert!(!detected(false, &[("LC_ALL", "C.utf8"), ("LANG", "C")]).ascii);
        assert!(detected(false, &[("LC_ALL", "C"), ("LANG", "de_DE.UTF-8")]).ascii);
        assert!(detected(false, &[("LC_CTYPE", "POSIX"), ("LANG", "de_DE.UTF-8")]).ascii);
        assert!(!detected(false, &[("LC_ALL", ""), ("LANG", "de_DE.UTF-8")]).ascii);
        assert!(detected(false, &[]).ascii, "no locale is the C locale");
        assert!(detected(true, &[("LANG", "en_US.UTF-8")]).ascii);
    }

    #[test]
    fn no_color_counts_when_it_says_something() {
        assert!(detected(false, &[]).colour);
        assert!(detected(false, &[("NO_COLOR", "")]).colour);
        let plain = detected(false, &[("NO_COLOR", "1")]);
        assert!(!plain.colour);
        for style in [plain.ink(Color::Red), plain.faint(), plain.strong(Color::Red), plain.alarm()]
        {
            assert_eq!((style.fg, style.bg), (None, None));
        }
    }
}
