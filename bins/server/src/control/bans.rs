//! Bans that were set while the server runs, beside those of the file.

use std::net::IpAddr;

use caves_session::IpNet;
use caves_session::caves::{Ban, BanTarget, check_name, fold_name};
use caves_store::BanRecord;
use caves_wire::text;

/// Bans that can be set while the server runs; more of them belong into the file, or a firewall.
pub(crate) const MOST: usize = 1024;
/// Bytes of a reason, as in the file.
pub(crate) const MAX_REASON: usize = 200;
/// What is said where nothing else is.
const NO_REASON: &str = "banned";

/// One of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RuntimeBan {
    pub(crate) ban: Ban,
    /// In seconds of Unix time; `None` is for good.
    pub(crate) until_unix_s: Option<u64>,
    pub(crate) set_unix_s: u64,
}

/// All of them, in the order they were set.
#[derive(Debug, Default)]
pub(crate) struct RuntimeBans {
    bans: Vec<RuntimeBan>,
    changed: bool,
}

impl RuntimeBans {
    /// Those that a store has kept; what is over or says nothing that we know is left out.
    pub(crate) fn from_records(records: Vec<BanRecord>, unix_s: u64) -> Self {
        let read = |record: BanRecord| {
            let target = target(&record.target, record.is_name).ok()?;
            let reason = reason(&record.reason).unwrap_or_else(|_| NO_REASON.to_owned());
            let BanRecord { until_unix_s, set_unix_s, .. } = record;
            Some(RuntimeBan { ban: Ban { target, reason }, until_unix_s, set_unix_s })
        };
        let mut bans =
            Self { bans: records.into_iter().filter_map(read).collect(), changed: false };
        bans.bans.truncate(MOST);
        bans.expire(unix_s);
        bans
    }

    /// As a store keeps them.
    pub(crate) fn records(&self) -> Vec<BanRecord> {
        let record = |ban: &RuntimeBan| BanRecord {
            target: shown(&ban.ban.target),
            is_name: matches!(ban.ban.target, BanTarget::Name(_)),
            reason: ban.ban.reason.clone(),
            until_unix_s: ban.until_unix_s,
            set_unix_s: ban.set_unix_s,
        };
        self.bans.iter().map(record).collect()
    }

    /// Whether they have changed since this was last asked.
    pub(crate) const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.changed, false)
    }

    pub(crate) fn list(&self) -> &[RuntimeBan] {
        &self.bans
    }

    /// Adds a ban; one of the same target gives way to it.
    pub(crate) fn add(&mut self, ban: RuntimeBan) -> Result<(), String> {
        let place = self.bans.iter().position(|old| same(&old.ban.target, &ban.ban.target));
        match place {
            Some(place) => self.bans[place] = ban,
            None if self.bans.len() >= MOST => {
                return Err(format!("there are {MOST} bans already: write some into the file"));
            }
            None => self.bans.push(ban),
        }
        self.changed = true;
        Ok(())
    }

    /// Takes a ban back; `false` when there is none of this very target.
    pub(crate) fn remove(&mut self, target: &BanTarget) -> bool {
        let before = self.bans.len();
        self.bans.retain(|ban| !same(&ban.ban.target, target));
        self.changed |= self.bans.len() != before;
        self.bans.len() != before
    }

    /// Forgets those whose time is over; `false` when there are none.
    pub(crate) fn expire(&mut self, unix_s: u64) -> bool {
        let before = self.bans.len();
        self.bans.retain(|ban| ban.until_unix_s.is_none_or(|until| unix_s < until));
        self.changed |= self.bans.len() != before;
        self.bans.len() != before
    }
}

/// Reads whom a ban concerns.
pub(crate) fn target(given: &str, is_name: bool) -> Result<BanTarget, String> {
    let network = given.parse().or_else(|_| given.parse::<IpAddr>().map(IpNet::from));
    match network {
        Ok(network) if !is_name => address(network),
        _ => match check_name(given.as_bytes()) {
            Ok(name) => Ok(BanTarget::Name(name.to_owned())),
            Err(error) => Err(format!("{given:?} is neither an address nor a name: {error}")),
        },
    }
}

fn address(network: IpNet) -> Result<BanTarget, String> {
    // Peers are known by their IPv4 address, so a ban of the other form would hold nobody.
    let network = match network {
        IpNet::V6(v6) => match v6.addr().to_ipv4_mapped() {
            Some(v4) => IpNet::new(v4.into(), v6.prefix_len().saturating_sub(96))
                .map_err(|error| error.to_string())?,
            None => network,
        },
        IpNet::V4(_) => network,
    };
    if network.prefix_len() == 0 {
        return Err(format!("{network} is everybody"));
    }
    Ok(BanTarget::Address(network.trunc()))
}

/// A reason that may be shown.
pub(crate) fn reason(given: &str) -> Result<String, String> {
    let clean: String = text::clean(given).collect();
    match clean.trim() {
        "" => Ok(NO_REASON.to_owned()),
        long if long.len() > MAX_REASON => {
            Err(format!("a reason has at most {MAX_REASON} bytes, this one has {}", long.len()))
        }
        reason => Ok(reason.to_owned()),
    }
}

/// A target as an operator writes it: a single address has no "/32".
pub(crate) fn shown(target: &BanTarget) -> String {
    match target {
        BanTarget::Address(net) if net.prefix_len() == net.max_prefix_len() => {
            net.addr().to_string()
        }
        BanTarget::Address(net) => net.to_string(),
        BanTarget::Name(name) => name.clone(),
    }
}

/// Whether two bans are of the same target; names are compared as names are.
pub(crate) fn same(a: &BanTarget, b: &BanTarget) -> bool {
    match (a, b) {
        (BanTarget::Address(a), BanTarget::Address(b)) => a == b,
        (BanTarget::Name(a), BanTarget::Name(b)) => fold_name(a) == fold_name(b),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ban(of: &str, until_unix_s: Option<u64>) -> RuntimeBan {
        let target = target(of, false).unwrap();
        RuntimeBan { ban: Ban { target, reason: "why".into() }, until_unix_s, set_unix_s: 100 }
    }

    fn targets(bans: &RuntimeBans) -> Vec<String> {
        bans.list().iter().map(|ban| shown(&ban.ban.target)).collect()
    }

    #[test]
    fn a_target_is_an_address_where_it_can_be_one() {
        let read = |text: &str| target(text, false).map(|target| shown(&target));
        assert_eq!(read("192.0.2.7").as_deref(), Ok("192.0.2.7"));
        assert_eq!(read("192.0.2.7/24").as_deref(), Ok("192.0.2.0/24"));
        assert_eq!(read("2001:db8::1/48").as_deref(), Ok("2001:db8::/48"));
        assert_eq!(read("::ffff:192.0.2.7").as_deref(), Ok("192.0.2.7"));
        assert_eq!(read("Ada Lovelace").as_deref(), Ok("Ada Lovelace"));
        assert_eq!(target("192.0.2.7", true), Ok(BanTarget::Name("192.0.2.7".into())));
        for wrong in ["", " Ada", "a\u{202e}b", "0.0.0.0/0", "::/0", &"x".repeat(33)] {
            assert!(read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn the_same_target_is_banned_once_and_a_ban_is_over_in_its_last_second() {
        let mut bans = RuntimeBans::default();
        bans.add(ban("Ada", None)).unwrap();
        bans.add(ban("192.0.2.0/24", Some(500))).unwrap();
        bans.add(ban("ＡＤＡ", Some(600))).unwrap();
        assert_eq!(targets(&bans), ["ＡＤＡ", "192.0.2.0/24"]);
        assert!(bans.take_changed() && !bans.take_changed());
        assert!(!bans.expire(499));
        assert!(!bans.take_changed());
        assert!(bans.expire(500) && bans.take_changed());
        assert_eq!(targets(&bans), ["ＡＤＡ"]);
        assert!(!bans.remove(&target("192.0.2.7", false).unwrap()));
        assert!(bans.remove(&target("ada", false).unwrap()));
        assert_eq!(targets(&bans), [""; 0]);
    }

    #[test]
    fn there_is_an_end_to_bans() {
        let mut bans = RuntimeBans::default();
        for number in 0..MOST {
            bans.add(ban(&format!("p{number}"), None)).unwrap();
        }
        assert!(bans.add(ban("one more", None)).is_err());
        bans.add(ban("P7", None)).unwrap();
        assert_eq!(bans.list().len(), MOST);
    }

    #[test]
    fn records_come_back_as_they_were_without_those_that_are_over_or_unreadable() {
        let mut bans = RuntimeBans::default();
        for of in ["Ada", "192.0.2.7", "2001:db8::/48"] {
            bans.add(ban(of, None)).unwrap();
        }
        bans.add(ban("late", Some(500))).unwrap();
        let mut records = bans.records();
        assert_eq!(records[1].target, "192.0.2.7");
        assert!(records[0].is_name && !records[1].is_name);
        records.push(BanRecord { target: " not a name".into(), ..records[0].clone() });
        let mut again = RuntimeBans::from_records(records, 500);
        assert_eq!(again.list(), &bans.list()[..3]);
        // What is over is gone from the store, too, at its next save.
        assert!(again.take_changed());
    }

    #[test]
    fn a_reason_may_be_shown_and_says_something() {
        assert_eq!(reason("  spam\u{1b}[2J\n ").as_deref(), Ok("spam[2J"));
        assert_eq!(reason("\u{200b} ").as_deref(), Ok("banned"));
        assert_eq!(reason(&"x".repeat(200)).map(|reason| reason.len()), Ok(200));
        assert!(reason(&"x".repeat(201)).is_err());
    }
}
