//! Cores of their own for two threads that work at the same time.
//!
//! Linux likes to wake a thread on the core of the one that woke it, although another is idle; the two then take turns
//! instead of working side by side.

#[cfg(target_os = "linux")]
mod system {
    use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
    use nix::unistd::Pid;

    /// The calling thread.
    const SELF: Pid = Pid::from_raw(0);

    /// Some cores.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Cores(Option<CpuSet>);

    impl Cores {
        /// The lower and the upper half of those that the calling thread may use; where that is one, both have it.
        pub(crate) fn halves() -> [Self; 2] {
            let Ok(all) = sched_getaffinity(SELF) else { return [Self(None); 2] };
            let cores: Vec<_> =
                (0..CpuSet::count()).filter(|core| all.is_set(*core).unwrap_or(false)).collect();
            let (lower, upper) = cores.split_at(cores.len() / 2);
            [lower, upper].map(|half| {
                let mut set = CpuSet::new();
                let is_whole = half.iter().all(|core| set.set(*core).is_ok());
                Self((is_whole && !lower.is_empty()).then_some(set))
            })
        }

        /// The calling thread has these from now on. Where that cannot be it has those that it had, and is only slower.
        pub(crate) fn take(self) {
            if let Some(set) = self.0 {
                let _ = sched_setaffinity(SELF, &set);
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn two_threads_have_no_core_in_common_where_there_are_two() {
            let cores = || {
                let set = sched_getaffinity(SELF).unwrap();
                (0..CpuSet::count()).filter(|n| set.is_set(*n).unwrap()).collect::<Vec<_>>()
            };
            let all = cores();
            let halves = Cores::halves().map(|half| {
                std::thread::spawn(move || {
                    half.take();
                    cores()
                })
            });
            let [lower, upper] = halves.map(|thread| thread.join().unwrap());
            if all.len() < 2 {
                assert_eq!([&lower, &upper], [&all, &all]);
            } else {
                assert_eq!([lower, upper].concat(), all);
            }
            assert_eq!(cores(), all, "this thread has all of them");
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    /// Whatever the system gives.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Cores;

    impl Cores {
        pub(crate) const fn halves() -> [Self; 2] {
            [Self; 2]
        }

        pub(crate) const fn take(self) {}
    }
}

pub(super) use system::Cores;
