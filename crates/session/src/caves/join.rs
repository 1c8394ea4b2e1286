//! Who may come in: registered clients, bans, used cookies (R30, R37, section 2).

use std::collections::{HashMap, HashSet, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use caves_link::time::Instant;
use caves_wire::caves::{ClientType, Nonce, Token};
use ipnet::IpNet;

use super::names::fold_name;
use crate::Peer;

/// What the operator says about one kind of client, or about one registered client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientEntry {
    /// The kind of client that this is about.
    pub client_type: ClientType,
    /// The name of a registered client's player; reserved for it.
    pub name: Option<String>,
    /// Whether it may join at all.
    pub allow: bool,
    /// The token of a registered client, at least 2^32.
    pub token: Option<Token>,
    /// From where the token may be used without joining.
    pub from: Vec<IpNet>,
    /// Whether a session that did not join gets all inline tags (R34).
    pub tags: bool,
}

/// Who is kept out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ban {
    /// Whom it concerns.
    pub target: BanTarget,
    /// What the player is told.
    pub reason: String,
}

/// Whom a ban concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BanTarget {
    /// Every address of a network.
    Address(IpNet),
    /// A name, compared as names are.
    Name(String),
}

/// The places in the list of registered tokens, and of names that are reserved, compared as names are.
pub(super) fn listed(entries: &[ClientEntry]) -> (HashMap<Token, usize>, HashMap<String, usize>) {
    let numbered = || entries.iter().enumerate();
    let registered = numbered().filter_map(|(place, entry)| Some((entry.token?, place)));
    let reserved =
        numbered().filter_map(|(place, entry)| Some((fold_name(entry.name.as_ref()?), place)));
    (registered.collect(), reserved.collect())
}

/// Finds a ban of an address.
pub(super) fn banned_address(bans: &[Ban], ip: IpAddr) -> Option<&Ban> {
    bans.iter().find(|ban| matches!(&ban.target, BanTarget::Address(net) if net.contains(&ip)))
}

/// The places in the list of the names that are banned, compared as names are; of two bans of one
/// name the first one counts. Folding them at each Join would cost a stranger nothing and us much.
pub(super) fn banned_names(bans: &[Ban]) -> HashMap<String, usize> {
    let mut names = HashMap::new();
    for (place, ban) in bans.iter().enumerate() {
        if let BanTarget::Name(name) = &ban.target {
            names.entry(fold_name(name)).or_insert(place);
        }
    }
    names
}

/// Whether a kind of client may join without a registered token (R37).
pub(super) fn may_join(entries: &[ClientEntry], open: bool, client_type: ClientType) -> bool {
    let about = || entries.iter().filter(|entry| entry.client_type == client_type);
    let known = client_type == ClientType::OFFICIAL || open || about().any(|entry| entry.allow);
    // An entry with a token speaks for that client alone when it forbids.
    known && !about().any(|entry| entry.token.is_none() && !entry.allow)
}

/// A cookie opens one session: these (address, nonce) pairs had theirs (section 2, cookie).
#[derive(Debug, Default)]
pub(super) struct UsedNonces {
    known: HashSet<(Peer, Nonce)>,
    order: VecDeque<(Instant, Peer, Nonce)>,
}

/// As long as a cookie can be valid.
const REMEMBERED: Duration = Duration::from_secs(20);
/// More sessions than this do not end within that time but by an attack: the strangers' budget
/// lets 2,000 packets a second through, and a session takes two of them.
const MOST_REMEMBERED: usize = 32_768;

/// The table is full: cookies have to be forgotten instead.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TableFull;

impl UsedNonces {
    pub(super) fn remember(
        &mut self,
        now: Instant,
        peer: Peer,
        nonce: Nonce,
    ) -> Result<(), TableFull> {
        self.forget_old(now);
        if self.order.len() >= MOST_REMEMBERED {
            self.order.clear();
            self.known.clear();
            return Err(TableFull);
        }
        if self.known.insert((peer, nonce)) {
            self.order.push_back((now, peer, nonce));
        }
        Ok(())
    }

    pub(super) fn contains(&mut self, now: Instant, peer: Peer, nonce: Nonce) -> bool {
        self.forget_old(now);
        self.known.contains(&(peer, nonce))
    }

    pub(super) fn len(&self) -> usize {
        self.known.len().max(self.order.len())
    }

    fn forget_old(&mut self, now: Instant) {
        while let Some((at, peer, nonce)) = self.order.front()
            && now.saturating_since(*at) >= REMEMBERED
        {
            self.known.remove(&(*peer, *nonce));
            self.order.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(client_type: u16, allow: bool, token: Option<u64>) -> ClientEntry {
        ClientEntry {
            client_type: ClientType(client_type),
            name: None,
            allow,
            token: token.map(Token),
            from: vec![],
            tags: false,
        }
    }

    #[test]
    fn official_clients_join_unless_forbidden_and_others_need_an_entry() {
        let entries = [entry(7, true, None), entry(8, false, None), entry(9, false, Some(1 << 40))];
        assert!(may_join(&entries, false, ClientType(0)));
        assert!(may_join(&entries, false, ClientType(7)));
        assert!(!may_join(&entries, false, ClientType(8)));
        assert!(!may_join(&entries, false, ClientType(9)), "a forbidden token allows nobody");
        assert!(may_join(&entries, true, ClientType(9)), "only that token is forbidden");
        assert!(!may_join(&entries, false, ClientType(10)));
        assert!(may_join(&entries, true, ClientType(10)));
        assert!(!may_join(&entries, true, ClientType(8)));
        assert!(!may_join(&[entry(0, false, None)], false, ClientType(0)));
    }

    #[test]
    fn bans_are_found_by_network_and_folded_name() {
        let bans = [
            Ban {
                target: BanTarget::Address("192.0.2.0/24".parse().unwrap()),
                reason: "spam".into(),
            },
            Ban { target: BanTarget::Name("Mallory".into()), reason: "rude".into() },
        ];
        let ip = |text: &str| text.parse().unwrap();
        assert_eq!(banned_address(&bans, ip("192.0.2.9")).map(|b| b.reason.as_str()), Some("spam"));
        assert!(banned_address(&bans, ip("192.0.3.9")).is_none());
        let names = banned_names(&bans);
        assert_eq!(names.get("mallory"), Some(&1));
        assert_eq!(names.len(), 1);
    }

    #[test]
    fn a_used_nonce_is_remembered_for_twenty_seconds() {
        let mut used = UsedNonces::default();
        let peer = Peer { socket: 0, addr: ([192, 0, 2, 1], 5).into() };
        used.remember(Instant::ZERO, peer, Nonce(1)).unwrap();
        assert!(used.contains(Instant::from_millis(19_999), peer, Nonce(1)));
        assert!(!used.contains(Instant::from_millis(19_999), peer, Nonce(2)));
        assert!(!used.contains(Instant::from_secs(20), peer, Nonce(1)));
    }

    #[test]
    fn a_full_table_says_so() {
        let mut used = UsedNonces::default();
        let peer = Peer { socket: 0, addr: ([192, 0, 2, 1], 5).into() };
        for nonce in 0..MOST_REMEMBERED as u64 {
            assert_eq!(used.remember(Instant::ZERO, peer, Nonce(nonce)), Ok(()));
        }
        assert_eq!(used.remember(Instant::ZERO, peer, Nonce(u64::MAX)), Err(TableFull));
    }
}
