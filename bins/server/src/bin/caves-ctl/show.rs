//! Answers for people: columns that suit a terminal of 80 characters.

use std::fmt::Write as _;

use caves_wire::text;
use serde_json::Value;

use crate::args::{Verb, When};

/// An answer as text, each line ended. `unix_s` is the present.
pub(crate) fn answer(verb: &Verb, answer: &Value, unix_s: u64) -> String {
    match verb {
        Verb::Players => players(answer),
        Verb::Sessions => sessions(answer),
        Verb::Kick { .. } => format!("{} was thrown out\n", word(&answer["kicked"])),
        Verb::Ban { .. } => ban(answer, unix_s),
        Verb::Unban { .. } => format!("{} may come again\n", word(&answer["unbanned"])),
        Verb::Bans => bans(answer, unix_s),
        Verb::Say { .. } => reached(answer),
        Verb::Save => "saved\n".to_owned(),
        Verb::Reload => reload(answer),
        Verb::Stats => stats(answer),
        Verb::LogLevel { .. } => format!("{}\n", word(&answer["level"])),
        Verb::Shutdown { when: When::Never, .. } => "the shutdown is cancelled\n".to_owned(),
        Verb::Shutdown { .. } => {
            format!("the server stops in {}\n", span(number(&answer["stops_in_s"])))
        }
        Verb::Version => version(answer),
    }
}

/// What a terminal may be shown: whatever a player chose, it is no command to a terminal.
pub(crate) fn clean(line: &str) -> String {
    // Errors of the configuration have lines.
    line.split('\n')
        .map(|line| text::clean(line).collect::<String>())
        .collect::<Vec<_>>()
        .join("\n")
}

fn players(answer: &Value) -> String {
    let mut table = Table::new(["NAME", "HERE", "HP", "ELO", "AT", "TYPE", "ADDRESS"], 0b0010_1110);
    for player in list(&answer["players"]) {
        table.row([
            word(&player["name"]),
            span(number(&player["age_s"])),
            format!("{}/{}", word(&player["hp"]), word(&player["hp_max"])),
            word(&player["elo"]),
            format!("{},{}", word(&player["x"]), word(&player["y"])),
            word(&player["client_type"]),
            word(&player["address"]),
        ]);
    }
    let count = list(&answer["players"]).len();
    format!("{}{count} of {} players\n", table.text(), word(&answer["max_players"]))
}

fn sessions(answer: &Value) -> String {
    let heads = ["NAME", "HERE", "IDLE", "TRIP", "LOSS", "IN", "OUT", "EV", "ADDRESS"];
    let mut table = Table::new(heads, 0b1111_1110);
    for session in list(&answer["sessions"]) {
        let flights = number(&session["events_waiting"]) + number(&session["events_in_flight"]);
        table.row([
            word(&session["name"]),
            span(number(&session["age_s"])),
            span(number(&session["silence_s"])),
            match session["round_trip_ms"].as_f64() {
                Some(ms) => format!("{ms:.0}ms"),
                None => "?".to_owned(),
            },
            share(number(&session["actions_missing"]), number(&session["actions_numbered"])),
            bytes(number(&session["received"]["bytes"])),
            bytes(number(&session["sent"]["bytes"])),
            flights.to_string(),
            word(&session["address"]),
        ]);
    }
    format!("{}{}\n", table.text(), counted(list(&answer["sessions"]).len(), "session"))
}

fn bans(answer: &Value, unix_s: u64) -> String {
    let mut table = Table::new(["TARGET", "FROM", "ENDS IN", "REASON"], 0b0100);
    for ban in list(&answer["bans"]) {
        let ends = ban["until"].as_u64().map(|until| span(until.saturating_sub(unix_s) as f64));
        table.row([
            word(&ban["target"]),
            word(&ban["from"]),
            ends.unwrap_or_else(|| "never".to_owned()),
            word(&ban["reason"]),
        ]);
    }
    format!("{}{}\n", table.text(), counted(list(&answer["bans"]).len(), "ban"))
}

fn ban(answer: &Value, unix_s: u64) -> String {
    let until = match answer["until"].as_u64() {
        Some(until) => format!("for {}", span(until.saturating_sub(unix_s) as f64)),
        None => "for good".to_owned(),
    };
    let ended = match number(&answer["ended"]) as u64 {
        0 => "nobody was here".to_owned(),
        count => format!("{} ended", counted(count as usize, "session")),
    };
    format!("{} is banned {until}; {ended}\n", word(&answer["banned"]))
}

fn reached(answer: &Value) -> String {
    let told = counted(number(&answer["told"]) as usize, "player");
    match number(&answer["missed"]) as u64 {
        0 => format!("told {told}\n"),
        missed => format!("told {told}; {missed} cannot be told\n"),
    }
}

fn reload(answer: &Value) -> String {
    let keys = |of: &Value| list(of).iter().map(word).collect::<Vec<_>>().join(", ");
    let (applied, restart) = (keys(&answer["applied"]), keys(&answer["need_restart"]));
    let mut text = match applied.as_str() {
        "" => "nothing has changed that can change while the server runs\n".to_owned(),
        applied => format!("changed: {applied}\n"),
    };
    if !restart.is_empty() {
        let _ = writeln!(text, "needs a restart: {restart}");
    }
    let ended = number(&answer["ended"]) as usize;
    if ended > 0 {
        let _ = writeln!(text, "{} ended", counted(ended, "session"));
    }
    text
}

fn stats(answer: &Value) -> String {
    let mut table = Table::new(["", ""], 0b00);
    let mut line = |what: &str, value: String| table.row([what.to_owned(), value]);
    line("up", span(number(&answer["uptime_s"])));
    line("players", format!("{} of {}", word(&answer["players"]), word(&answer["max_players"])));
    line("tick", format!("{} ({} a second)", word(&answer["tick"]), word(&answer["tick_rate"])));
    line("seed", word(&answer["seed"]));
    line("entities", word(&answer["entities"]));
    line("chunks in memory", word(&answer["chunks"]));
    line("not saved yet", word(&answer["unsaved"]));
    line("received", word(&answer["received"]));
    line(
        "dropped",
        format!("{}{}", word(&answer["dropped"]), reasons(&answer["dropped_by_reason"])),
    );
    line("sent", word(&answer["sent"]));
    line("not sent", word(&answer["unsent"]));
    line("read errors", word(&answer["unread"]));
    line("events waiting", word(&answer["events_waiting"]));
    line("bans", word(&answer["bans"]));
    line("log level", word(&answer["log_level"]));
    if let Some(seconds) = answer["stops_in_s"].as_f64() {
        line("stops in", span(seconds));
    }
    table.body()
}

/// " (malformed 3, token 1)", or nothing.
fn reasons(of: &Value) -> String {
    let Some(reasons) = of.as_object().filter(|reasons| !reasons.is_empty()) else {
        return String::new();
    };
    let reason = |(name, count): (&String, &Value)| format!("{} {}", clean(name), word(count));
    format!(" ({})", reasons.iter().map(reason).collect::<Vec<_>>().join(", "))
}

fn version(answer: &Value) -> String {
    format!(
        "caves-server {}, protocol {}, generator {}, process {}\n",
        word(&answer["version"]),
        word(&answer["protocol"]),
        word(&answer["generator"]),
        word(&answer["pid"])
    )
}

fn list(of: &Value) -> &[Value] {
    of.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn number(of: &Value) -> f64 {
    of.as_f64().unwrap_or(0.0)
}

/// A text, a number, or what stands for nothing.
fn word(of: &Value) -> String {
    match of {
        Value::String(text) => clean(text),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    }
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

/// "7s", "3m05", "2h07", "12d3h": four to six characters.
fn span(seconds: f64) -> String {
    let seconds = seconds.max(0.0) as u64;
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{minutes}m{:02}", seconds % 60),
        3600..86_400 => format!("{hours}h{:02}", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

/// "999", "12.3k", "4.5M".
fn bytes(count: f64) -> String {
    let mut count = count;
    for unit in ["", "k", "M", "G", "T"] {
        if count < 999.5 {
            let whole = unit.is_empty() || count >= 99.95;
            return if whole { format!("{count:.0}{unit}") } else { format!("{count:.1}{unit}") };
        }
        count /= 1000.0;
    }
    format!("{count:.0}P")
}

/// "1.2%", or that nothing is known.
fn share(part: f64, of: f64) -> String {
    if of > 0.0 { format!("{:.1}%", 100.0 * part / of) } else { "?".to_owned() }
}

/// Cells in columns, two spaces apart.
struct Table<const N: usize> {
    /// Bit i: column i is for numbers, which end at the same place.
    right: u32,
    rows: Vec<[String; N]>,
}

impl<const N: usize> Table<N> {
    fn new(heads: [&str; N], right: u32) -> Self {
        Self { right, rows: vec![heads.map(str::to_owned)] }
    }

    fn row(&mut self, cells: [String; N]) {
        self.rows.push(cells);
    }

    /// With heads, unless there is nothing below them.
    fn text(&self) -> String {
        if self.rows.len() == 1 { String::new() } else { self.lines(0) }
    }

    /// Without heads.
    fn body(&self) -> String {
        self.lines(1)
    }

    fn lines(&self, from: usize) -> String {
        let width = |column: usize| {
            self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0)
        };
        let widths: [usize; N] = std::array::from_fn(width);
        let mut text = String::new();
        for row in &self.rows[from..] {
            let mut line = String::new();
            for (column, cell) in row.iter().enumerate() {
                let gap = if column == 0 { "" } else { "  " };
                let room = " ".repeat(widths[column] - cell.chars().count());
                let right = self.right >> column & 1 == 1;
                line += gap;
                line += &if right { room + cell } else { cell.to_owned() + &room };
            }
            text += line.trim_end();
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spans_and_sizes_are_short() {
        let spans = [0.4, 7.0, 59.9, 60.0, 185.0, 3599.0, 3600.0, 7620.0, 86_400.0, 1_047_600.0];
        let shown = ["0s", "7s", "59s", "1m00", "3m05", "59m59", "1h00", "2h07", "1d0h", "12d3h"];
        assert_eq!(spans.map(span), shown);
        let sizes = [0.0, 999.0, 1000.0, 12_345.0, 99_949.0, 99_951.0, 999_600.0, 4_560_000_000.0];
        let shown = ["0", "999", "1.0k", "12.3k", "99.9k", "100k", "1.0M", "4.6G"];
        assert_eq!(sizes.map(bytes), shown);
    }

    #[test]
    fn sessions_of_an_ordinary_server_fit_80_columns() {
        let session = json!({
            "name": "guest-123456", "entity": 7, "address": "255.255.255.255:65535",
            "age_s": 86_399.9, "silence_s": 1.5, "round_trip_ms": 1234.5,
            "actions_missing": 12, "actions_numbered": 1000,
            "received": { "datagrams": 1, "bytes": 123_456_789_u64 },
            "sent": { "datagrams": 1, "bytes": 999_999_999_u64 },
            "events_waiting": 256, "events_in_flight": 8,
        });
        let shown = answer(&Verb::Sessions, &json!({ "sessions": [session] }), 0);
        let expected = "\
NAME            HERE  IDLE    TRIP  LOSS    IN   OUT   EV  ADDRESS
guest-123456  23h59    1s  1234ms  1.2%  123M  1.0G  264  255.255.255.255:65535
1 session
";
        let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(squeeze(&shown), squeeze(expected));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        // Numbers end where their head ends.
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines[0].find("TRIP").unwrap() + 4, lines[1].find("1234ms").unwrap() + 6);
    }

    #[test]
    fn players_of_an_ordinary_server_fit_80_columns() {
        let player = json!({
            "name": "Ada Lovelace", "entity": 7, "address": "255.255.255.255:65535",
            "client_type": 65535, "age_s": 3600, "x": -12345, "y": 12345, "hp": 100,
            "hp_max": 100, "elo": 1234,
        });
        let shown = answer(&Verb::Players, &json!({ "players": [player], "max_players": 64 }), 0);
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert!(shown.ends_with("\n1 of 64 players\n"));
        let nobody = answer(&Verb::Players, &json!({ "players": [], "max_players": 64 }), 0);
        assert_eq!(nobody, "0 of 64 players\n");
    }

    #[test]
    fn nothing_that_a_player_chose_commands_a_terminal() {
        let player = json!({ "name": "\u{1b}[2JAda\u{202e}\r\n", "address": "x" });
        let shown = answer(&Verb::Players, &json!({ "players": [player], "max_players": 1 }), 0);
        assert!(shown.contains("[2JAda"), "{shown}");
        assert!(!shown.contains(['\u{1b}', '\u{202e}', '\r']), "{shown:?}");
    }

    #[test]
    fn what_changed_by_a_reload_is_told_in_lines() {
        let said = json!({
            "applied": ["server.motd", "ban"], "need_restart": ["server.listen"], "ended": 2,
        });
        let expected =
            "changed: server.motd, ban\nneeds a restart: server.listen\n2 sessions ended\n";
        assert_eq!(answer(&Verb::Reload, &said, 0), expected);
        let nothing = json!({ "applied": [], "need_restart": [], "ended": 0 });
        let expected = "nothing has changed that can change while the server runs\n";
        assert_eq!(answer(&Verb::Reload, &nothing, 0), expected);
    }

    #[test]
    fn bans_tell_when_they_end() {
        let ban = json!({ "target": "Ada", "from": "command", "until": 7300, "reason": "why" });
        let file =
            json!({ "target": "192.0.2.0/24", "from": "file", "until": null, "reason": "x" });
        let shown = answer(&Verb::Bans, &json!({ "bans": [file, ban] }), 100);
        let squeezed: Vec<String> = shown
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        let expected = [
            "TARGET FROM ENDS IN REASON",
            "192.0.2.0/24 file never x",
            "Ada command 2h00 why",
            "2 bans",
        ];
        assert_eq!(squeezed, expected);
    }
}
