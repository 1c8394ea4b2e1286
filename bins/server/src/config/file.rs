//! The file as it is written: nothing is checked here but names and types of keys.

use serde::Deserialize;
use serde::de::{self, Unexpected, Visitor};
use std::fmt;
use toml::Spanned;

use super::{LogFormat, LogLevel};

pub(super) type Text = Option<Spanned<String>>;
pub(super) type Number = Option<Spanned<i64>>;
pub(super) type List = Option<Spanned<Vec<Spanned<String>>>>;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct File {
    pub(super) server: ServerTable,
    pub(super) world: WorldTable,
    pub(super) session: SessionTable,
    pub(super) limits: LimitsTable,
    // Nothing and an empty list differ: only what is said goes over what another layer said.
    pub(super) client: Option<Vec<ClientTable>>,
    pub(super) ban: Option<Vec<Spanned<BanTable>>>,
    pub(super) control: ControlTable,
    pub(super) metrics: MetricsTable,
    pub(super) log: LogTable,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct ServerTable {
    pub(super) name: Text,
    pub(super) motd: Text,
    pub(super) listen: List,
    pub(super) max_players: Number,
    pub(super) tick_rate: Number,
    pub(super) threads: Number,
    pub(super) open: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct WorldTable {
    pub(super) seed: Option<Seed>,
    pub(super) store: Text,
    pub(super) save_interval_s: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct SessionTable {
    pub(super) timeout_s: Number,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct LimitsTable {
    pub(super) strangers_per_second: Number,
    pub(super) strangers_burst: Number,
    pub(super) strangers_total_per_second: Number,
    pub(super) sessions_per_address: Number,
    pub(super) exempt: List,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(super) struct ClientTable {
    pub(super) client_type: Spanned<i64>,
    pub(super) name: Text,
    pub(super) allow: Option<bool>,
    pub(super) token: Text,
    pub(super) from: List,
    pub(super) tags: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct BanTable {
    pub(super) address: Text,
    pub(super) name: Text,
    pub(super) reason: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct LogTable {
    pub(super) level: Option<LogLevel>,
    pub(super) format: Option<LogFormat>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct ControlTable {
    pub(super) socket: Text,
    pub(super) mode: Text,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, expecting = "a table")]
pub(super) struct MetricsTable {
    pub(super) listen: Text,
}

/// The world's seed. TOML promises no integers above 2^63 - 1, so digits in a string will do.
#[derive(Debug, Clone, Copy)]
pub(super) struct Seed(pub(super) u64);

impl<'de> Deserialize<'de> for Seed {
    fn deserialize<D: de::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SeedVisitor)
    }
}

struct SeedVisitor;

impl Visitor<'_> for SeedVisitor {
    type Value = Seed;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a whole number from 0 to 2^64 - 1, or one like \"0x1f\"")
    }

    fn visit_u64<E: de::Error>(self, seed: u64) -> Result<Seed, E> {
        Ok(Seed(seed))
    }

    fn visit_i64<E: de::Error>(self, seed: i64) -> Result<Seed, E> {
        let unexpected = Unexpected::Signed(seed);
        u64::try_from(seed).map(Seed).map_err(|_| E::invalid_value(unexpected, &self))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Seed, E> {
        hexadecimal(text).map(Seed).ok_or_else(|| E::invalid_value(Unexpected::Str(text), &self))
    }
}

/// Reads `0x` and 1 to 16 hexadecimal digits.
pub(super) fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x")?;
    let plain = digits.len() <= 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, 16).ok()).flatten()
}

/// Reads the permissions of a file: 1 to 4 octal digits, 0 to 777.
pub(super) fn permissions(text: &str) -> Option<u32> {
    let plain = (1..=4).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let mode = plain.then(|| u32::from_str_radix(text, 8).ok()).flatten()?;
    (mode <= 0o777).then_some(mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_are_up_to_777_in_octal_digits() {
        for (text, mode) in [("0600", 384), ("0000", 0), ("0777", 511), ("7", 7), ("660", 432)] {
            assert_eq!(permissions(text), Some(mode), "{text}");
        }
        for bad in ["", "0o600", "+600", "-1", "0800", "1000", "00600", "rw-------", " 600"] {
            assert_eq!(permissions(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn hexadecimal_numbers_have_a_prefix_and_up_to_16_digits() {
        assert_eq!(hexadecimal("0x1f"), Some(31));
        assert_eq!(hexadecimal("0xFFFFFFFFFFFFFFFF"), Some(u64::MAX));
        for bad in ["", "0x", "1f", "0x+1", "0x1_0", "0x00000000000000001", "0xg", "0x é"] {
            assert_eq!(hexadecimal(bad), None, "{bad:?}");
        }
    }
}
