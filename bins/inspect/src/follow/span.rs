//! The smallest, the mean and the largest of some durations.

use serde_json::{Value, json};

/// Durations in microseconds, summed up as they come.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Span {
    count: u64,
    sum: u64,
    least: u64,
    most: u64,
}

impl Span {
    /// Adds one.
    pub fn add(&mut self, micros: u64) {
        self.least = if self.count == 0 { micros } else { self.least.min(micros) };
        self.most = self.most.max(micros);
        self.sum = self.sum.saturating_add(micros);
        self.count += 1;
    }

    /// How many there were.
    pub const fn count(&self) -> u64 {
        self.count
    }

    /// Least, mean and most in milliseconds; nothing where there were none.
    pub fn figures(&self) -> Vec<(&'static str, Value)> {
        if self.count == 0 {
            return Vec::new();
        }
        let millis = |micros: u64| json!(micros as f64 / 1000.0);
        vec![
            ("measured", json!(self.count)),
            ("least_ms", millis(self.least)),
            ("mean_ms", millis(self.sum / self.count)),
            ("most_ms", millis(self.most)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_mean_and_most_are_kept() {
        let mut span = Span::default();
        assert!(span.figures().is_empty());
        for micros in [3000, 1000, 5000] {
            span.add(micros);
        }
        let figures = span.figures();
        let values: Vec<f64> = figures.iter().filter_map(|(_, value)| value.as_f64()).collect();
        assert_eq!(values, [3.0, 1.0, 3.0, 5.0]);
    }
}
