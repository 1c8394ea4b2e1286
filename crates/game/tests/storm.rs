//! The storm in small, as an ordinary test; and that it finds what is wrong: one deliberate fault for
//! each invariant, with the seed at which it shows.

mod common;
#[path = "../examples/storm/run.rs"]
mod run;
#[path = "../examples/storm/scenario.rs"]
mod scenario;

use caves_session::fault::Fault;
use run::{name, run, shrink, traced};
use scenario::Scenario;

/// Runs of the ordinary test; `cargo run --release -p caves-game --example storm` has more.
const RUNS: u64 = 400;

#[test]
fn nothing_breaks() {
    let broken: Vec<_> = (0..RUNS)
        .filter_map(|seed| Some((seed, run(&Scenario::draw(seed), None).err()?)))
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn a_seed_is_the_same_run_each_time() {
    let ladder = |seed| traced(&Scenario::draw(seed), None, true).1;
    assert_eq!(ladder(5), ladder(5));
    assert_ne!(ladder(5), ladder(6));
}

/// A deliberate fault, the seed at which the storm finds it, and the invariant that it breaks.
const FAULTS: [(Fault, u64, &str); 24] = [
    (Fault::ActsTwice, 0, "once"),
    (Fault::ForgetsGuard, 58, "order"),
    (Fault::TurnsRound, 0, "origin"),
    (Fault::LiesOfExecuted, 0, "bits"),
    (Fault::LosesActions, 0, "arrive"),
    (Fault::MixesTicks, 0, "mix"),
    (Fault::TakesOldTick, 0, "back"),
    (Fault::TearsChunks, 0, "tiles"),
    (Fault::KeepsCaves, 0, "caves"),
    (Fault::HoldsUnseen, 4, "heal"),
    (Fault::GivesUp, 5, "back again"),
    (Fault::NeverRecovers, 0, "recovery"),
    (Fault::ForgetsQuery, 0, "queries"),
    (Fault::SkipsEvents, 9, "events"),
    (Fault::FliesUnbounded, 24, "bounds"),
    (Fault::LeaksSlot, 0, "slots"),
    (Fault::KeepsDead, 0, "dead"),
    (Fault::AnswersMore, 0, "budget"),
    (Fault::TrustsStrangers, 10, "stranger"),
    (Fault::TellsEverybody, 2, "plain"),
    (Fault::PanicsOnJunk, 2, "panic"),
    (Fault::Babbles, 0, "rest"),
    (Fault::StandsStill, 0, "still"),
    (Fault::Fidgets, 0, "polls"),
];

#[test]
fn each_fault_is_found_and_by_its_own_invariant() {
    assert!(Fault::ALL.iter().all(|fault| FAULTS.iter().any(|(of, ..)| of == fault)));
    for (fault, seed, invariant) in FAULTS {
        let scenario = Scenario::draw(seed);
        let failure = run(&scenario, Some(fault)).expect_err("a fault is found");
        assert_eq!(name(&failure), invariant, "{fault:?}: {failure}");
        assert_eq!(run(&scenario, None).map_err(|failure| panic!("{failure}")).map(|_| ()), Ok(()));
    }
}

#[test]
fn what_fails_is_made_short() {
    for (fault, seed, invariant) in [FAULTS[0], FAULTS[9], FAULTS[18]] {
        let scenario = Scenario::draw(seed);
        let short = shrink(&scenario, Some(fault), invariant);
        let failure = run(&short, Some(fault)).expect_err("it still fails");
        assert_eq!(name(&failure), invariant);
        // One input or one stranger is enough for each of these.
        let (before, after) = (scenario.steps.len(), short.steps.len());
        assert!(after <= 12 && after < before, "{fault:?}: {before} steps, then {after}:\n{short}");
    }
}
