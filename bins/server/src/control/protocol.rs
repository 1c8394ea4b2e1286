//! What is said over the control socket: one JSON object a line, one answer to each, in order.
//!
//! The page for those who write another program for it is `notes/control.md`.
//!
//! ```
//! use caves_server::control::Command;
//!
//! let say = Command::Say { text: "Hello".into() };
//! assert_eq!(say.line(), "{\"command\":\"say\",\"text\":\"Hello\",\"v\":1}\n");
//! assert_eq!(Command::parse(say.line().as_bytes()), Ok(say));
//! let error = Command::parse(b"{\"command\":\"dance\"}\n").unwrap_err();
//! assert!(error.starts_with("unknown variant `dance`"));
//! ```

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of this protocol. Keys may be added to answers without another one.
pub const VERSION: u64 = 1;
/// Bytes of one command, its line feed included.
pub const MAX_LINE: usize = 8192;

/// What an operator may ask for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    /// Who plays.
    Players {},
    /// All sessions with their figures.
    Sessions {},
    /// Throws a player out.
    Kick {
        /// The player.
        name: String,
        /// What it reads; may be empty.
        #[serde(default)]
        reason: String,
    },
    /// Keeps somebody out.
    Ban {
        /// `ADDRESS`, `ADDRESS/BITS` or a name.
        target: String,
        /// Whether it is a name, whatever it looks like.
        #[serde(default)]
        is_name: bool,
        /// What they read; "banned" when it is empty.
        #[serde(default)]
        reason: String,
        /// For so many seconds; for good without it.
        #[serde(default)]
        for_s: Option<u64>,
    },
    /// Takes a ban back.
    Unban {
        /// As it was banned.
        target: String,
        /// Whether it is a name, whatever it looks like.
        #[serde(default)]
        is_name: bool,
    },
    /// All bans.
    Bans {},
    /// Tells everybody something.
    Say {
        /// What.
        text: String,
    },
    /// Writes everything; answered when it is safe.
    Save {},
    /// Reads the configuration again.
    Reload {},
    /// Figures of the server.
    Stats {},
    /// How much the log tells.
    LogLevel {
        /// From now on; as it is without it.
        #[serde(default)]
        level: Option<String>,
    },
    /// Stops the server after a countdown.
    Shutdown {
        /// So many seconds from now.
        seconds: u64,
        /// What players read; may be empty.
        #[serde(default)]
        reason: String,
    },
    /// Takes a countdown back.
    ShutdownCancel {},
    /// Which server this is.
    Version {},
}

impl Command {
    /// The line that asks for it.
    pub fn line(&self) -> String {
        let mut fields = match serde_json::to_value(self) {
            Ok(Value::Object(fields)) => fields,
            // Texts, numbers and truths in a struct are an object.
            _ => Map::new(),
        };
        fields.insert("v".into(), VERSION.into());
        format!("{}\n", Value::Object(fields))
    }

    /// Reads a line.
    ///
    /// # Errors
    /// What is wrong with it, in words for whoever wrote it.
    pub fn parse(line: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(line)
            .map_err(|error| format!("a command is one JSON object on a line: {error}"))?;
        let Value::Object(mut fields) = value else {
            return Err("a command is one JSON object on a line".to_owned());
        };
        match fields.remove("v").map_or(Some(VERSION), |version| version.as_u64()) {
            Some(VERSION) => {}
            _ => {
                return Err(format!(
                    "this server speaks version {VERSION} of the control protocol"
                ));
            }
        }
        serde_json::from_value(Value::Object(fields)).map_err(|error| error.to_string())
    }
}

/// An answer that says yes, and what there is to say.
pub(crate) fn yes(fields: Value) -> String {
    let mut answer = match fields {
        Value::Object(fields) => fields,
        _ => Map::new(),
    };
    answer.insert("v".into(), VERSION.into());
    answer.insert("ok".into(), true.into());
    format!("{}\n", Value::Object(answer))
}

/// An answer that says no, and why.
pub(crate) fn no(error: &str) -> String {
    let answer = serde_json::json!({ "v": VERSION, "ok": false, "error": error });
    format!("{answer}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read_as_the_page_writes_them() {
        let parse = |line: &str| Command::parse(line.as_bytes());
        assert_eq!(parse(r#"{"v":1,"command":"players"}"#), Ok(Command::Players {}));
        assert_eq!(parse(r#"{"command":"shutdown-cancel"}"#), Ok(Command::ShutdownCancel {}));
        let kick = Command::Kick { name: "Ada".into(), reason: String::new() };
        assert_eq!(parse(r#"{"command":"kick","name":"Ada"}"#), Ok(kick));
        let ban = Command::Ban {
            target: "192.0.2.0/24".into(),
            is_name: false,
            reason: "spam".into(),
            for_s: Some(7200),
        };
        let line = r#"{"command":"ban","target":"192.0.2.0/24","reason":"spam","for_s":7200}"#;
        assert_eq!(parse(line), Ok(ban));
        let level = Command::LogLevel { level: None };
        assert_eq!(parse(r#"{"command":"log-level"}"#), Ok(level));
    }

    #[test]
    fn what_is_no_command_is_told_why() {
        for (line, says) in [
            ("", "one JSON object"),
            ("players", "one JSON object"),
            ("[]", "one JSON object"),
            ("{}", "missing field `command`"),
            (r#"{"v":2,"command":"players"}"#, "speaks version 1"),
            (r#"{"v":"1","command":"players"}"#, "speaks version 1"),
            (r#"{"command":"kick"}"#, "missing field `name`"),
            (r#"{"command":"kick","name":"a","loudly":true}"#, "unknown field `loudly`"),
            (r#"{"command":"shutdown","seconds":-1}"#, "invalid value"),
            ("{\"command\":\"say\",\"text\":\"\u{fffd}", "one JSON object"),
        ] {
            let error = Command::parse(line.as_bytes()).unwrap_err();
            assert!(error.contains(says), "{line}: {error}");
        }
    }

    #[test]
    fn an_answer_is_one_line_whatever_is_in_it() {
        assert_eq!(
            yes(serde_json::json!({"a": "x\ny"})),
            "{\"a\":\"x\\ny\",\"ok\":true,\"v\":1}\n"
        );
        assert_eq!(no("two\nlines"), "{\"error\":\"two\\nlines\",\"ok\":false,\"v\":1}\n");
    }
}
