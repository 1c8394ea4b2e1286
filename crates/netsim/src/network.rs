//! Many links with one order of arrival.
//!
//! ```
//! use caves_netsim::{LinkConfig, Network};
//!
//! let mut network = Network::new(1);
//! let (up, down) = network.add_pair(LinkConfig::WAN, LinkConfig::PERFECT);
//! network.send(0, up, 5, "to the server");
//! network.send(1, down, 5, "to the client");
//! let now = network.next_arrival().unwrap();
//! assert_eq!(network.poll(now), Some((down, "to the client")));
//! ```

use crate::config::LinkConfig;
use crate::link::{Corruption, Link, Stats};
use crate::rng::SplitMix64;

/// The name of one link within its [`Network`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LinkId(usize);

impl LinkId {
    /// Counts from 0, in the order in which links were added.
    pub const fn index(self) -> usize {
        self.0
    }
}

/// A set of links whose datagrams come out in one order of arrival.
///
/// What a link does follows from the seed and from its place among the links, and not from what is
/// sent on others.
///
/// # Panics
///
/// Methods that take a [`LinkId`] panic if it comes from another network with more links.
#[derive(Clone, Debug)]
pub struct Network<P> {
    seeds: SplitMix64,
    corruption: Option<Corruption<P>>,
    links: Vec<Link<P>>,
}

impl<P> Network<P> {
    /// A network without links.
    pub const fn new(seed: u64) -> Self {
        Self { seeds: SplitMix64::new(seed), corruption: None, links: Vec::new() }
    }

    /// What is done to damaged payloads, on the links there are and on those added later; see
    /// [`Link::set_corruption`].
    pub fn set_corruption(&mut self, corruption: Corruption<P>) {
        self.corruption = Some(corruption);
        self.links.iter_mut().for_each(|link| link.set_corruption(corruption));
    }

    /// Adds one direction.
    pub fn add(&mut self, config: LinkConfig) -> LinkId {
        let mut link = Link::new(config, self.seeds.next_u64());
        if let Some(corruption) = self.corruption {
            link.set_corruption(corruption);
        }
        self.links.push(link);
        LinkId(self.links.len() - 1)
    }

    /// Adds both directions between a client and a server: up, down.
    pub fn add_pair(&mut self, up: LinkConfig, down: LinkConfig) -> (LinkId, LinkId) {
        (self.add(up), self.add(down))
    }

    /// Sends a datagram of `size` bytes on one link at `now`.
    pub fn send(&mut self, now: u64, link: LinkId, size: usize, payload: P)
    where
        P: Clone,
    {
        self.links[link.0].send(now, size, payload);
    }

    /// The datagram that arrived first on any link, if one has arrived by `now`, and its link.
    ///
    /// Of those that arrive in the same microsecond the link added first goes first.
    pub fn poll(&mut self, now: u64) -> Option<(LinkId, P)> {
        let arrivals = self.links.iter().enumerate();
        let (_, index) = arrivals.filter_map(|(i, link)| Some((link.next_arrival()?, i))).min()?;
        let payload = self.links[index].poll(now)?;
        Some((LinkId(index), payload))
    }

    /// The moment of the next arrival on any link, `None` if nothing is on the way.
    pub fn next_arrival(&self) -> Option<u64> {
        self.links.iter().filter_map(Link::next_arrival).min()
    }

    /// Other settings for one link from now on.
    pub fn set_config(&mut self, link: LinkId, config: LinkConfig) {
        self.links[link.0].set_config(config);
    }

    /// One of the links.
    pub fn link(&self, link: LinkId) -> &Link<P> {
        &self.links[link.0]
    }

    /// What one link did so far.
    pub fn stats(&self, link: LinkId) -> Stats {
        self.links[link.0].stats()
    }

    /// What all links did so far.
    pub fn total(&self) -> Stats {
        self.links.iter().map(Link::stats).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Chance;
    use crate::link::flip_bits;
    use std::time::Duration;

    fn drain<P>(network: &mut Network<P>) -> Vec<(u64, LinkId, P)> {
        let mut arrived = Vec::new();
        while let Some(now) = network.next_arrival() {
            arrived.extend(network.poll(now).map(|(link, payload)| (now, link, payload)));
        }
        arrived
    }

    fn delayed(millis: u64) -> LinkConfig {
        LinkConfig { delay: Duration::from_millis(millis), ..LinkConfig::PERFECT }
    }

    #[test]
    fn datagrams_of_all_links_come_in_order_of_arrival() {
        let mut network = Network::new(1);
        let (slow, fast) = network.add_pair(delayed(30), delayed(10));
        let mean = network.add(delayed(20));
        network.send(0, slow, 1, 'a');
        network.send(0, fast, 1, 'b');
        network.send(0, mean, 1, 'c');
        network.send(10_000, mean, 1, 'd');
        assert_eq!(network.poll(9_999), None);
        let expected =
            [(10_000, fast, 'b'), (20_000, mean, 'c'), (30_000, slow, 'a'), (30_000, mean, 'd')];
        assert_eq!(drain(&mut network), expected);
        assert_eq!((network.total().sent, network.total().delivered), (4, 4));
        assert_eq!(network.stats(mean).delivered, 2);
    }

    #[test]
    fn a_link_does_not_depend_on_what_the_others_carry() {
        let arrivals = |noise: u64| {
            let mut network = Network::new(77);
            let other = network.add(LinkConfig::CHAOS);
            let link = network.add(LinkConfig::LOSSY_20);
            assert_eq!((other.index(), link.index()), (0, 1));
            (0..noise).for_each(|n| network.send(n, other, 1, n));
            (0..500).for_each(|n| network.send(n * 1000, link, 1, n));
            let arrived = drain(&mut network);
            arrived.into_iter().filter(|(_, from, _)| *from == link).collect::<Vec<_>>()
        };
        assert_eq!(arrivals(0), arrivals(1000));
    }

    #[test]
    fn links_of_one_network_lose_different_datagrams() {
        let mut network = Network::new(77);
        let (a, b) = network.add_pair(LinkConfig::LOSSY_20, LinkConfig::LOSSY_20);
        for n in 0..500 {
            network.send(n * 1000, a, 1, n);
            network.send(n * 1000, b, 1, n);
        }
        let arrived = drain(&mut network);
        let on = |link| arrived.iter().filter(move |(_, l, _)| *l == link).map(|(_, _, n)| *n);
        assert_ne!(on(a).collect::<Vec<u64>>(), on(b).collect::<Vec<u64>>());
    }

    #[test]
    fn a_partition_is_healed_while_running() {
        let mut network = Network::new(1);
        let link = network.add(LinkConfig::PERFECT);
        network.set_config(link, LinkConfig { down: true, ..LinkConfig::PERFECT });
        network.send(0, link, 1, 'a');
        assert!(network.link(link).config().down);
        network.set_config(link, LinkConfig::PERFECT);
        network.send(1, link, 1, 'b');
        assert_eq!(drain(&mut network), [(1, link, 'b')]);
        assert_eq!(network.stats(link).lost, 1);
    }

    #[test]
    fn corruption_reaches_links_added_before_and_after() {
        let mut network = Network::new(1);
        let config = LinkConfig { corrupt: Chance::ALWAYS, ..LinkConfig::PERFECT };
        let before = network.add(config);
        network.set_corruption(flip_bits);
        let after = network.add(config);
        for link in [before, after] {
            network.send(0, link, 4, vec![0; 4]);
        }
        let arrived = drain(&mut network);
        assert_eq!(arrived.len(), 2);
        assert!(arrived.iter().all(|(_, _, bytes)| bytes != &[0; 4]));
    }
}
