//! What was measured against what was wanted.

use std::fmt;

/// One figure that we are after.
#[derive(Debug)]
pub struct Goal {
    what: String,
    limit: f64,
    measured: Option<f64>,
    stretch: bool,
}

impl Goal {
    /// `measured` is to be at most `limit`, in whatever unit `what` says. `None` was not measured, and
    /// is not met.
    pub fn new(what: impl Into<String>, limit: f64, measured: Option<f64>) -> Goal {
        Goal { what: what.into(), limit, measured, stretch: false }
    }

    /// A goal that is welcome but not asked for.
    pub fn stretch(what: impl Into<String>, limit: f64, measured: Option<f64>) -> Goal {
        Goal { stretch: true, ..Goal::new(what, limit, measured) }
    }

    /// Whether it was asked for and not reached.
    pub fn is_missed(&self) -> bool {
        !self.stretch && self.measured.is_none_or(|measured| measured > self.limit)
    }
}

impl fmt::Display for Goal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.stretch { "stretch" } else { "goal" };
        write!(f, "  {:<66} {kind:<7} {:>6.2}", self.what, self.limit)?;
        match self.measured {
            None => write!(f, " {:>9}  not measured", "-"),
            Some(measured) if measured <= self.limit => write!(f, " {measured:>9.2}  met"),
            // No share of nothing.
            Some(measured) if self.limit <= 0.0 => {
                write!(f, " {measured:>9.2}  short by {:.2}", measured - self.limit)
            }
            Some(measured) => {
                let short = (measured / self.limit - 1.0) * 100.0;
                write!(f, " {measured:>9.2}  short by {short:.0} %")
            }
        }
    }
}

/// The larger of what two samples gave, if anything was measured.
pub fn worst(measured: impl IntoIterator<Item = Option<f64>>) -> Option<f64> {
    measured.into_iter().flatten().reduce(f64::max)
}
