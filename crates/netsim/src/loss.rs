//! Which datagrams are lost: each on its own, and in runs.

use crate::config::LinkConfig;
use crate::rng::SplitMix64;

/// The state of the line, good or bad, and the draws that change it.
#[derive(Clone, Debug)]
pub(crate) struct Loss {
    rng: SplitMix64,
    bad: bool,
}

impl Loss {
    pub(crate) const fn new(rng: SplitMix64) -> Self {
        Self { rng, bad: false }
    }

    /// Whether the next datagram is lost.
    ///
    /// Always three draws, so that a changed setting leaves later ones in their place.
    pub(crate) fn takes_next(&mut self, config: &LinkConfig) -> bool {
        let (change, single, run) = (self.rng.fork(), self.rng.fork(), self.rng.fork());
        let happens = |mut rng: SplitMix64, chance| rng.happens(chance);
        let Some(burst) = config.burst else {
            self.bad = false;
            return happens(single, config.loss);
        };
        let turn = if self.bad { burst.leave } else { burst.enter };
        self.bad ^= happens(change, turn);
        if self.bad { happens(run, burst.loss) } else { happens(single, config.loss) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Burst, Chance};

    const SENT: usize = 100_000;

    fn lost(config: &LinkConfig, seed: u64) -> Vec<bool> {
        let mut loss = Loss::new(SplitMix64::new(seed));
        (0..SENT).map(|_| loss.takes_next(config)).collect()
    }

    /// The number of lost datagrams and the number of runs that they form.
    fn count(lost: &[bool]) -> (usize, usize) {
        let total = lost.iter().filter(|lost| **lost).count();
        let runs = lost.chunk_by(|a, b| a == b).filter(|run| run[0]).count();
        (total, runs)
    }

    #[test]
    fn bursty_loss_has_longer_runs_than_random_loss_of_the_same_rate() {
        let random = LinkConfig { loss: Chance::percent(20), ..LinkConfig::PERFECT };
        let burst = Some(Burst::lasting(Chance::percent(20), 5));
        let bursty = LinkConfig { burst, ..LinkConfig::PERFECT };
        for seed in 1..4 {
            // 20000 of 100000; the standard deviation is 126, and about 380 for runs of 5.
            let (total, runs) = count(&lost(&random, seed));
            assert!((19_300..20_700).contains(&total), "seed {seed}: {total} lost");
            // A run of random loss is 1 / 0.8 = 1.25 long.
            assert!(total * 10 > runs * 12 && total * 10 < runs * 13, "{total} in {runs} runs");

            let (total, runs) = count(&lost(&bursty, seed));
            assert!((18_000..22_000).contains(&total), "seed {seed}: {total} lost");
            assert!(total > runs * 45 / 10 && total < runs * 55 / 10, "{total} in {runs} runs");
        }
    }

    #[test]
    fn the_bad_state_may_lose_only_a_part() {
        let burst = Burst {
            enter: Chance::percent(50),
            leave: Chance::percent(50),
            loss: Chance::percent(40),
        };
        let config = LinkConfig { burst: Some(burst), ..LinkConfig::PERFECT };
        // Half of the time bad, 40 of 100 lost then.
        let (total, _) = count(&lost(&config, 8));
        assert!((19_000..21_000).contains(&total), "{total} lost");
    }

    #[test]
    fn never_and_always_are_exact() {
        assert_eq!(count(&lost(&LinkConfig::PERFECT, 1)).0, 0);
        let all = LinkConfig { loss: Chance::ALWAYS, ..LinkConfig::PERFECT };
        assert_eq!(count(&lost(&all, 1)).0, SENT);
    }

    #[test]
    fn a_higher_chance_loses_the_same_datagrams_and_more() {
        let five = LinkConfig { loss: Chance::percent(5), ..LinkConfig::PERFECT };
        let ten = LinkConfig { loss: Chance::percent(10), ..LinkConfig::PERFECT };
        let (five, ten) = (lost(&five, 4), lost(&ten, 4));
        assert!(five.iter().zip(&ten).all(|(five, ten)| !five || *ten));
        assert!(count(&five).0 < count(&ten).0);
    }
}
