//! Figures become text. Names and units follow Prometheus' conventions: base units, `_total` for what
//! only grows.

use std::fmt;

use caves_session::DropReason;
use caves_wire::caves::{PacketType, RefuseReason};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeCounterValue, EncodeGaugeValue, EncodeMetric, NoLabelSet,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Registry;

use super::{Figures, StoreFigures};
use crate::traffic::{Count, Direction, packet_types, refuse_reasons};

/// What the text is, for HTTP.
pub const CONTENT_TYPE: &str = prometheus_client::encoding::prometheus_text::CONTENT_TYPE;

/// The shares of sessions whose round trip is told: the best, the middle, nine in ten, the worst.
const QUANTILES: [(f64, &str); 4] = [(0.0, "0"), (0.5, "0.5"), (0.9, "0.9"), (1.0, "1")];

impl Figures {
    /// All of it in Prometheus' text format, version 0.0.4.
    pub fn text(&self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self.clone()));
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = prometheus_client::encoding::prometheus_text::encode(&mut text, &registry);
        text
    }
}

impl Collector for Figures {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut families = Families(encoder);
        self.about(&mut families)?;
        self.process(&mut families)?;
        self.ticks(&mut families)?;
        self.datagrams(&mut families)?;
        self.players(&mut families)?;
        self.round_trips(&mut families)?;
        self.world(&mut families)?;
        self.store.as_ref().map_or(Ok(()), |store| store.encode(&mut families))
    }
}

impl Figures {
    fn about(&self, families: &mut Families<'_>) -> fmt::Result {
        let about = &self.about;
        let labels = [
            ("version", about.version.to_owned()),
            ("protocol", about.protocol.to_string()),
            ("generator", about.generator.to_string()),
            ("content", format!("{:08x}", about.content)),
        ];
        families.gauges("caves_build_info", "Which program this is, always 1.", [(labels, 1_u64)])
    }

    /// Under the names that all Prometheus clients use.
    fn process(&self, families: &mut Families<'_>) -> fmt::Result {
        let process = &self.process;
        families.gauge(
            "process_start_time_seconds",
            "When the program started, in seconds since 1970.",
            self.about.started_unix_s,
        )?;
        if let Some(bytes) = process.resident_bytes {
            families.gauge("process_resident_memory_bytes", "Memory in use.", bytes)?;
        }
        if let Some(cpu) = process.cpu {
            let help = "Processor time, of user and system.";
            families.counter("process_cpu_seconds", help, cpu.as_secs_f64())?;
        }
        if let Some(fds) = process.open_fds {
            families.gauge("process_open_fds", "Open file descriptors.", fds)?;
        }
        Ok(())
    }

    fn ticks(&self, families: &mut Families<'_>) -> fmt::Result {
        let tally = &self.tally;
        families.counter("caves_ticks", "Ticks of the world that were run.", tally.ticks)?;
        families.counter(
            "caves_ticks_dropped",
            "Ticks that never were, because the server was held up for too long.",
            tally.ticks_dropped,
        )?;
        families.gauge(
            "caves_tick_load_ratio",
            "What ticks take of their period until all is sent, averaged over about twenty; from 0.8 on nobody \
             else is let in, above 1 the game slows.",
            f64::from(self.gauges.load_percent) / 100.0,
        )?;
        let mut metric = families.0.encode_descriptor(
            "caves_tick_duration_seconds",
            "From the beginning of a tick until the kernel took its last datagram; ticks made up for \
             together are one.",
            None,
            MetricType::Histogram,
        )?;
        let times = &tally.tick_times;
        metric.encode_histogram::<NoLabelSet>(times.sum_s(), times.count(), &times.buckets(), None)
    }

    fn datagrams(&self, families: &mut Families<'_>) -> fmt::Result {
        let counts = self.traffic_by_label();
        families.counters(
            "caves_datagrams",
            "Datagrams read from the sockets and handed to the kernel.",
            counts.iter().map(|(labels, count)| (labels.clone(), count.datagrams)),
        )?;
        families.counters(
            "caves_datagram_bytes",
            "Their bytes, without the headers of UDP and IP.",
            counts.iter().map(|(labels, count)| (labels.clone(), count.bytes)),
        )?;
        families.counters(
            "caves_drops",
            "Datagrams that were read and dropped.",
            DropReason::ALL.map(|reason| {
                ([("reason", snake(&format!("{reason:?}")))], self.counters.dropped(reason))
            }),
        )?;
        families.counter(
            "caves_send_errors",
            "Datagrams that the kernel did not take.",
            self.unsent,
        )?;
        families.counter("caves_read_errors", "Times a socket could not be read.", self.unread)?;
        if let Some(drops) = self.kernel_drops {
            let help = "Datagrams that the kernel dropped, because a socket's buffer was full.";
            families.counter("caves_kernel_receive_drops", help, drops)?;
        }
        let chunks = self.traffic.of(Direction::Out, Some(PacketType::CHUNK)).datagrams;
        families.counter("caves_chunks_sent", "Chunks handed to the kernel.", chunks)
    }

    /// Each direction with the types that belong there, and with those others that came all the same.
    fn traffic_by_label(&self) -> Vec<([(&'static str, String); 2], Count)> {
        let mut counts = Vec::new();
        for direction in Direction::ALL {
            let label = if direction == Direction::In { "in" } else { "out" };
            for packet_type in packet_types().map(Some).chain([None]) {
                let count = self.traffic.of(direction, packet_type);
                if count != Count::default() || belongs(direction, packet_type) {
                    let name =
                        packet_type.and_then(PacketType::name).map_or("unknown".into(), snake);
                    counts.push(([("direction", label.to_owned()), ("type", name)], count));
                }
            }
        }
        counts
    }

    fn players(&self, families: &mut Families<'_>) -> fmt::Result {
        let Self { gauges, tally, .. } = self;
        families.gauge("caves_players", "Players in the caves.", gauges.players)?;
        families.gauge(
            "caves_players_arriving",
            "Players who have joined, and whose place is being read from the store.",
            gauges.arriving,
        )?;
        families.gauge("caves_max_players", "Players there may be.", gauges.max_players)?;
        families.gauge("caves_sessions", "Living sessions.", gauges.sessions.sessions)?;
        let joined = [("new", tally.joined), ("returned", tally.returned)];
        families.counters(
            "caves_joins",
            "Players who came: with a new entity, or with the one of an earlier session.",
            joined.map(|(kind, count)| ([("kind", kind)], count)),
        )?;
        let reasons = refuse_reasons().map(Some).chain([None]);
        families.counters(
            "caves_refusals",
            "Refuse packets that were sent.",
            reasons.map(|it| ([("reason", refuse_label(it))], self.traffic.refusals(it))),
        )?;
        families.counters(
            "caves_leaves",
            "Sessions that ended.",
            tally.left().map(|(reason, count)| ([("reason", reason)], count)),
        )?;
        families.gauge(
            "caves_events_waiting_max",
            "Events (chat, notices, combat) that wait in the fullest session; 256 end it.",
            gauges.sessions.events_waiting,
        )?;
        families.gauge(
            "caves_events_in_flight_max",
            "Events sent and not acknowledged in the fullest session, 8 at most.",
            gauges.sessions.events_in_flight,
        )
    }

    fn round_trips(&self, families: &mut Families<'_>) -> fmt::Result {
        let mut known = self.gauges.round_trips.clone();
        known.sort_unstable();
        families.gauge(
            "caves_round_trip_sessions",
            "Sessions whose round trip is known.",
            known.len(),
        )?;
        let Some(last) = known.len().checked_sub(1) else { return Ok(()) };
        families.gauges(
            "caves_round_trip_seconds",
            "Round trips of the living sessions: the best, the middle, nine in ten, the worst.",
            QUANTILES.map(|(share, label)| {
                // The smallest that so many of them do not exceed.
                let place = (share * known.len() as f64).ceil() as usize;
                let trip = known[place.saturating_sub(1).min(last)];
                ([("quantile", label)], trip.as_secs_f64())
            }),
        )
    }

    fn world(&self, families: &mut Families<'_>) -> fmt::Result {
        let gauges = &self.gauges;
        families.gauge("caves_chunks_loaded", "Chunks in memory.", gauges.chunks_loaded)?;
        families.gauge("caves_entities", "Entities in memory.", gauges.entities)
    }
}

impl StoreFigures {
    fn encode(&self, families: &mut Families<'_>) -> fmt::Result {
        families.gauge(
            "caves_store_unsaved_records",
            "Chunks and players whose newest state is not on the disk yet.",
            self.unsaved_records,
        )?;
        families.gauge("caves_store_unsaved_bytes", "Their bytes, about.", self.unsaved_bytes)?;
        families.gauge(
            "caves_store_failing",
            "1 while writing fails (it is tried again each second), else 0.",
            u64::from(self.failing),
        )?;
        families.counter("caves_store_commits", "Transactions written.", self.commits)?;
        if let Some(took) = self.last_commit {
            let help = "How long the last transaction took.";
            families.gauge("caves_store_last_commit_duration_seconds", help, took.as_secs_f64())?;
        }
        families.counter("caves_store_reads", "Chunks read from the store.", self.reads)?;
        families.counter(
            "caves_store_unreadable",
            "Records that could not be read.",
            self.unreadable,
        )?;
        families.counter(
            "caves_store_refused",
            "Records not written because nobody could read them again: faults of this program.",
            self.refused,
        )
    }
}

/// A family with its HELP and TYPE lines, then a line for each set of labels. A counter's name is given
/// without `_total`.
struct Families<'a>(DescriptorEncoder<'a>);

impl Families<'_> {
    fn counter(&mut self, name: &str, help: &str, value: impl EncodeCounterValue) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        ConstCounter::new(value).encode(metric)
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl EncodeGaugeValue) -> fmt::Result {
        let metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        ConstGauge::new(value).encode(metric)
    }

    fn counters<V, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'static str, V); N], u64)>,
    ) -> fmt::Result
    where
        V: prometheus_client::encoding::EncodeLabelValue,
    {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Counter)?;
        for (labels, value) in samples {
            ConstCounter::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }

    fn gauges<V, const N: usize>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = ([(&'static str, V); N], impl EncodeGaugeValue)>,
    ) -> fmt::Result
    where
        V: prometheus_client::encoding::EncodeLabelValue,
    {
        let mut metric = self.0.encode_descriptor(name, help, None, MetricType::Gauge)?;
        for (labels, value) in samples {
            ConstGauge::new(value).encode(metric.encode_family(&labels)?)?;
        }
        Ok(())
    }
}

/// Whether a type is told of even when none came, so that whoever collects sees it begin.
fn belongs(direction: Direction, packet_type: Option<PacketType>) -> bool {
    let Some(known) = packet_type else { return direction == Direction::In };
    match direction {
        Direction::In => known.is_from_client(),
        Direction::Out => !known.is_from_client() || known == PacketType::LEAVE,
    }
}

fn refuse_label(reason: Option<RefuseReason>) -> &'static str {
    match reason {
        Some(RefuseReason::VERSION) => "version",
        Some(RefuseReason::FULL) => "full",
        Some(RefuseReason::BANNED) => "banned",
        Some(RefuseReason::CLIENT_TYPE) => "client_type",
        Some(RefuseReason::BAD_NAME) => "bad_name",
        Some(RefuseReason::NAME_TAKEN) => "name_taken",
        Some(RefuseReason::BAD_COOKIE) => "bad_cookie",
        Some(RefuseReason::SHUTTING_DOWN) => "shutting_down",
        Some(RefuseReason::TOO_MANY) => "too_many",
        Some(RefuseReason::SEALED_REQUIRED) => "sealed_required",
        _ => "other",
    }
}

/// `EventAck` becomes `event_ack`.
fn snake(name: &str) -> String {
    let mut label = String::new();
    for (place, letter) in name.chars().enumerate() {
        if letter.is_ascii_uppercase() && place > 0 {
            label.push('_');
        }
        label.push(letter.to_ascii_lowercase());
    }
    label
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::metrics::{About, Gauges, Process, TickTimes};
    use crate::store;

    fn lines(figures: &Figures, family: &str) -> Vec<String> {
        let text = figures.text();
        let of_it = |line: &&str| line.starts_with(family) && !line.starts_with('#');
        text.lines().filter(of_it).map(str::to_owned).collect()
    }

    #[test]
    fn a_histogram_has_cumulative_buckets_a_sum_and_a_count() {
        let mut tick_times = TickTimes::default();
        for us in [80, 90, 600, 3_000, 3_000, 900_000] {
            tick_times.note(Duration::from_micros(us));
        }
        let mut figures = Figures::default();
        figures.tally.tick_times = tick_times;
        let expected = [
            "caves_tick_duration_seconds_bucket{le=\"0.0001\"} 2",
            "caves_tick_duration_seconds_bucket{le=\"0.00025\"} 2",
            "caves_tick_duration_seconds_bucket{le=\"0.0005\"} 2",
            "caves_tick_duration_seconds_bucket{le=\"0.001\"} 3",
            "caves_tick_duration_seconds_bucket{le=\"0.0025\"} 3",
            "caves_tick_duration_seconds_bucket{le=\"0.005\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"0.01\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"0.025\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"0.05\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"0.1\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"0.2\"} 5",
            "caves_tick_duration_seconds_bucket{le=\"+Inf\"} 6",
            "caves_tick_duration_seconds_sum 0.90677",
            "caves_tick_duration_seconds_count 6",
        ];
        assert_eq!(lines(&figures, "caves_tick_duration_seconds"), expected);
    }

    #[test]
    fn round_trips_are_told_by_shares_of_the_sessions() {
        let mut figures = Figures::default();
        assert_eq!(lines(&figures, "caves_round_trip"), ["caves_round_trip_sessions 0"]);
        // 10, 20, ... 200 ms, in no order.
        let trips = (1..=20).map(|n| Duration::from_millis(n * 7 % 20 * 10 + 10));
        figures.gauges.round_trips = trips.collect();
        let expected = [
            "caves_round_trip_sessions 20",
            "caves_round_trip_seconds{quantile=\"0\"} 0.01",
            "caves_round_trip_seconds{quantile=\"0.5\"} 0.1",
            "caves_round_trip_seconds{quantile=\"0.9\"} 0.18",
            "caves_round_trip_seconds{quantile=\"1\"} 0.2",
        ];
        assert_eq!(lines(&figures, "caves_round_trip"), expected);
        figures.gauges.round_trips.truncate(1);
        assert_eq!(lines(&figures, "caves_round_trip_seconds{quantile=\"0.9\"}").len(), 1);
    }

    #[test]
    fn without_a_store_nothing_is_told_of_one() {
        let mut figures = Figures::default();
        assert_eq!(lines(&figures, "caves_store"), [""; 0]);
        let status = store::Status {
            failing: Some("no space left on device".to_owned()),
            unsaved_bytes: 1_234,
            commits: 67,
            last_commit_duration: Some(Duration::from_micros(1_500)),
            reads: 8,
            unreadable: 9,
            refused: 10,
            ..store::Status::default()
        };
        figures.store = Some(StoreFigures::new(&status, 5));
        let expected = [
            "caves_store_unsaved_records 5",
            "caves_store_unsaved_bytes 1234",
            "caves_store_failing 1",
            "caves_store_commits_total 67",
            "caves_store_last_commit_duration_seconds 0.0015",
            "caves_store_reads_total 8",
            "caves_store_unreadable_total 9",
            "caves_store_refused_total 10",
        ];
        assert_eq!(lines(&figures, "caves_store"), expected);
    }

    #[test]
    fn the_program_and_its_process_are_told_under_the_usual_names() {
        let figures = Figures {
            about: About {
                version: "1.2.3",
                protocol: 1,
                generator: 4,
                content: 0xAB,
                started_unix_s: 1_764_486_000.25,
            },
            process: Process {
                resident_bytes: Some(5_025_792),
                cpu: Some(Duration::from_millis(2_250)),
                open_fds: Some(9),
            },
            gauges: Gauges { max_players: 64, ..Gauges::default() },
            ..Figures::default()
        };
        let text = figures.text();
        for line in [
            "caves_build_info{version=\"1.2.3\",protocol=\"1\",generator=\"4\",content=\"000000ab\"} 1",
            "process_start_time_seconds 1764486000.25",
            "process_resident_memory_bytes 5025792",
            "process_cpu_seconds_total 2.25",
            "# TYPE process_cpu_seconds_total counter",
            "process_open_fds 9",
            "caves_max_players 64",
        ] {
            assert!(text.lines().any(|it| it == line), "{line} is missing in\n{text}");
        }
    }

    #[test]
    fn types_that_belong_to_the_other_side_are_told_of_when_they_came() {
        let mut figures = Figures::default();
        let chunks_in = "caves_datagrams_total{direction=\"in\",type=\"chunk\"}";
        assert_eq!(lines(&figures, chunks_in), [""; 0]);
        figures.traffic.note(Direction::In, &[0x4C, 0x52, 1, 2, 0, 0]);
        assert_eq!(lines(&figures, chunks_in), [format!("{chunks_in} 1")]);
        assert_eq!(lines(&figures, "caves_datagrams_total").len(), 9 + 1 + 11);
    }

    #[test]
    fn labels_are_written_with_underscores() {
        assert_eq!(
            ["EventAck", "Pong", "OldAction"].map(snake),
            ["event_ack", "pong", "old_action"]
        );
    }
}
