//! How tiles and things look on the map: one column each, whatever their names are.

use caves_world::{Class, Content, KindId, TileId};
use ratatui::style::Color;

/// One cell of the map.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Glyph {
    /// One column wide.
    pub(crate) sign: char,
    /// For terminals that know nothing else.
    pub(crate) ascii: char,
    pub(crate) colour: Color,
}

/// Stands for all that this client does not know.
const UNKNOWN: Glyph = glyph('?', '?', Color::Magenta);

const fn glyph(sign: char, ascii: char, colour: Color) -> Glyph {
    Glyph { sign, ascii, colour }
}

/// By name, since numbers belong to the content. The signs are from code page 437 where they can
/// be: consoles have them, and they are narrow everywhere.
const TILES: &[(&str, Glyph)] = &[
    ("core:unknown", glyph(' ', ' ', Color::Reset)),
    ("core:floor", glyph('·', '.', Color::Gray)),
    ("core:moss", glyph('"', '"', Color::Green)),
    ("core:gravel", glyph(':', ':', Color::Gray)),
    ("core:mushrooms", glyph('ⁿ', ',', Color::LightMagenta)),
    ("core:shallow_water", glyph('≈', '~', Color::Blue)),
    ("core:rock", glyph('░', '#', Color::Yellow)),
    ("core:granite", glyph('▒', '%', Color::Gray)),
    ("core:bedrock", glyph('█', 'X', Color::DarkGray)),
    ("core:crystal_vein", glyph('◊', '*', Color::LightCyan)),
    ("core:coal_seam", glyph('▓', '&', Color::DarkGray)),
    ("core:stalagmite", glyph('▲', '^', Color::Yellow)),
];

const KINDS: &[(&str, Glyph)] = &[
    ("core:player", glyph('@', '@', Color::LightCyan)),
    ("core:cave_rat", glyph('r', 'r', Color::LightRed)),
    ("core:ghoul", glyph('g', 'g', Color::LightRed)),
    ("core:glow_beetle", glyph('b', 'b', Color::LightGreen)),
    ("core:chest", glyph('≡', 'C', Color::LightYellow)),
    ("core:sign", glyph('¶', 'P', Color::LightYellow)),
    ("core:stone", glyph('•', 'o', Color::White)),
    ("core:crystal", glyph('*', '+', Color::LightCyan)),
    ("core:torch", glyph('/', '/', Color::LightYellow)),
    ("core:bread", glyph('=', '=', Color::LightYellow)),
    ("core:coin", glyph('$', '$', Color::LightYellow)),
    ("core:bone", glyph('-', '-', Color::White)),
    ("core:coal", glyph('■', ';', Color::White)),
    ("core:mushroom", glyph('τ', '!', Color::LightMagenta)),
];

/// The glyphs of a content, by number.
#[derive(Debug, Clone)]
pub(crate) struct Glyphs {
    tiles: Vec<Glyph>,
    kinds: Vec<Glyph>,
}

/// One line of the legend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) glyph: Glyph,
    pub(crate) title: String,
}

impl Glyphs {
    pub(crate) fn new(content: &Content) -> Self {
        let (mut tiles, mut kinds) = (Vec::new(), Vec::new());
        for (id, def) in content.tiles() {
            put(&mut tiles, id.0, find(TILES, &def.name));
        }
        for (id, def) in content.kinds() {
            put(&mut kinds, id.0, find(KINDS, &def.name));
        }
        Self { tiles, kinds }
    }

    pub(crate) fn tile(&self, id: TileId) -> Glyph {
        self.tiles.get(usize::from(id.0)).copied().unwrap_or(UNKNOWN)
    }

    pub(crate) fn kind(&self, id: KindId) -> Glyph {
        self.kinds.get(usize::from(id.0)).copied().unwrap_or(UNKNOWN)
    }

    /// What is what: the ground first, then who and what is found there, then the unknown.
    pub(crate) fn legend(&self, content: &Content) -> Vec<Entry> {
        let entry = |glyph, title: &str| Entry { glyph, title: title.to_owned() };
        let tiles = content.tiles().filter(|(id, _)| *id != TileId::UNKNOWN);
        let tiles = tiles.map(|(id, def)| entry(self.tile(id), &def.title));
        let kinds = content.kinds().map(|(id, def)| match def.class {
            Class::Player => entry(self.kind(id), "you and other players"),
            _ => entry(self.kind(id), &def.title),
        });
        tiles.chain(kinds).chain([entry(UNKNOWN, "something unknown")]).collect()
    }
}

fn put(table: &mut Vec<Glyph>, id: u16, glyph: Glyph) {
    let place = usize::from(id);
    if table.len() <= place {
        table.resize(place + 1, UNKNOWN);
    }
    table[place] = glyph;
}

fn find(table: &[(&str, Glyph)], name: &str) -> Glyph {
    table.iter().find(|(known, _)| *known == name).map_or(UNKNOWN, |(_, glyph)| *glyph)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::char_width;

    #[test]
    fn all_content_has_a_glyph() {
        let content = Content::core();
        for (_, def) in content.tiles() {
            assert!(TILES.iter().any(|(name, _)| *name == def.name), "{}", def.name);
        }
        for (_, def) in content.kinds() {
            assert!(KINDS.iter().any(|(name, _)| *name == def.name), "{}", def.name);
        }
    }

    #[test]
    fn every_glyph_takes_one_column_and_has_an_ascii_form() {
        for (name, glyph) in TILES.iter().chain(KINDS) {
            assert_eq!(char_width(glyph.sign), 1, "{name}");
            assert!(glyph.ascii.is_ascii_graphic() || glyph.ascii == ' ', "{name}");
        }
    }

    #[test]
    fn no_two_glyphs_look_the_same_without_colour() {
        let all: Vec<_> = TILES.iter().chain(KINDS).chain([&("?", UNKNOWN)]).collect();
        for (i, (name, glyph)) in all.iter().enumerate() {
            for (other, same) in &all[i + 1..] {
                assert_ne!(glyph.sign, same.sign, "{name}, {other}");
                assert_ne!(glyph.ascii, same.ascii, "{name}, {other}");
            }
        }
    }

    #[test]
    fn unknown_numbers_have_a_placeholder() {
        let glyphs = Glyphs::new(&Content::core());
        assert_eq!(glyphs.tile(TileId(u16::MAX)).sign, '?');
        assert_eq!(glyphs.kind(KindId(999)).ascii, '?');
        assert_eq!(glyphs.tile(TileId::ROCK).ascii, '#');
    }
}
