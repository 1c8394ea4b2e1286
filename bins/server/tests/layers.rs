//! The configuration in its layers: what goes over what, what is said about mistakes, what is
//! printed, and what a reload changes.

mod common;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use caves_server::Config;
use caves_server::config::{ConfigError, ConfigSource, ControlConfig, Loaded, StoreConfig};
use common::TempDir;

/// A key, a value that is not its default, the same value as a shell would have it, and whether it
/// can change while a server runs.
struct Case(&'static str, &'static str, &'static str, bool);

const RUNNING: bool = true;
const RESTART: bool = false;

const CASES: [Case; 23] = [
    Case("server.name", "\"Moria\"", "Moria", RUNNING),
    Case("server.motd", "\"7 \\\"rats\\\" # here\"", "7 \"rats\" # here", RUNNING),
    Case("server.listen", "[\"0.0.0.0:1\", \"[::]:1\"]", "0.0.0.0:1, [::]:1", RESTART),
    Case("server.max_players", "20", "20", RUNNING),
    Case("server.tick_rate", "5", " 5 ", RESTART),
    Case("server.threads", "2", "2", RESTART),
    Case("server.open", "true", "true", RUNNING),
    Case("world.seed", "\"0xFFFFFFFFFFFFFFFF\"", "0xFFFFFFFFFFFFFFFF", RESTART),
    Case("world.store", "\"/var/lib/caves/a.redb\"", "/var/lib/caves/a.redb", RESTART),
    Case("world.save_interval_s", "60", "60", RUNNING),
    Case("session.timeout_s", "30", "30", RUNNING),
    Case("limits.strangers_per_second", "11", "11", RUNNING),
    Case("limits.strangers_burst", "21", "21", RUNNING),
    Case("limits.strangers_total_per_second", "2001", "2001", RUNNING),
    Case("limits.sessions_per_address", "9", "9", RUNNING),
    Case("limits.exempt", "[\"10.0.0.0/8\"]", "10.0.0.0/8", RUNNING),
    Case(
        "client",
        "[{ client_type = 7, name = \"Ada\", token = \"0x123456789a\" }]",
        "[{ client_type = 7, name = \"Ada\", token = \"0x123456789a\" }]",
        RUNNING,
    ),
    Case("ban", "[{ name = \"Mallory\" }]", "[{ name = \"Mallory\" }]", RUNNING),
    Case("control.socket", "\"/run/caves.sock\"", "/run/caves.sock", RESTART),
    Case("control.mode", "\"0660\"", "0660", RESTART),
    Case("metrics.listen", "\"127.0.0.1:21069\"", "127.0.0.1:21069", RESTART),
    Case("log.level", "\"debug\"", "debug", RUNNING),
    Case("log.format", "\"json\"", "json", RESTART),
];

/// Everything in a configuration, to compare two of them.
fn everything(config: &Config) -> String {
    format!("{config:#?}")
}

fn parse(text: &str) -> Config {
    Config::parse("config.toml", text).unwrap_or_else(|error| panic!("{error}"))
}

fn variable(name: &str, value: &str) -> (OsString, OsString) {
    (name.into(), value.into())
}

/// A file, an environment and settings of the command line.
struct Given<'a> {
    file: &'a str,
    env: &'a [(&'a str, &'a str)],
    set: &'a [(&'a str, &'a str)],
}

impl Given<'_> {
    fn load(&self) -> Result<Loaded, ConfigError> {
        let dir = TempDir::new();
        let path = dir.file("config.toml", self.file);
        let env = self.env.iter().map(|(name, value)| variable(name, value));
        let mut source = ConfigSource::new(Some(path)).with_env(env)?;
        for (key, value) in self.set {
            source = source.with_set(key, value)?;
        }
        source.load()
    }
}

fn with_env(env: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Given { file: "", env, set: &[] }.load().map(|loaded| loaded.config)
}

fn with_set(set: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Given { file: "", env: &[], set }.load().map(|loaded| loaded.config)
}

fn error_of_set(key: &str, value: &str) -> String {
    with_set(&[(key, value)]).unwrap_err().to_string()
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap()
}

/// The keys of the printed configuration, those of the examples in its comments as well.
fn keys_of_the_template() -> BTreeSet<String> {
    let mut examples = String::new();
    for line in Config::TEMPLATE.lines() {
        let example = line.strip_prefix('#').filter(|rest| !rest.starts_with(' '));
        examples += example.unwrap_or(line);
        examples.push('\n');
    }
    let table: toml::Table = examples.parse().unwrap();
    let mut keys = BTreeSet::new();
    for (outer, value) in &table {
        match value.as_table() {
            Some(inner) => keys.extend(inner.keys().map(|inner| format!("{outer}.{inner}"))),
            None => drop(keys.insert(outer.clone())),
        }
    }
    keys
}

#[test]
fn the_cases_here_are_all_keys_that_there_are() {
    let cases: BTreeSet<String> = CASES.iter().map(|case| case.0.to_owned()).collect();
    assert_eq!(cases, keys_of_the_template());
}

#[test]
fn every_key_can_be_set_in_the_file_the_environment_and_the_command_line() {
    let defaults = everything(&Config::default());
    for Case(key, toml, bare, _) in CASES {
        let expected = everything(&parse(&format!("{key} = {toml}")));
        assert_ne!(expected, defaults, "{key}: not the default");
        let name = format!("CAVES__{}", key.to_uppercase().replace('.', "__"));
        for value in [toml, bare] {
            for name in [&name, &name.to_lowercase()] {
                let config = with_env(&[(name, value)]).unwrap();
                assert_eq!(everything(&config), expected, "{name}={value}");
            }
            let config = with_set(&[(key, value)]).unwrap();
            assert_eq!(everything(&config), expected, "--set {key}={value}");
        }
    }
}

#[test]
fn a_later_layer_goes_over_an_earlier_one_key_by_key() {
    let given = Given {
        file: "[server]\nname = \"file\"\nmotd = \"file\"\nmax_players = 1\ntick_rate = 3\n",
        env: &[("CAVES__SERVER__MOTD", "env"), ("CAVES__SERVER__MAX_PLAYERS", "2")],
        set: &[("server.max_players", "3"), ("server.open", "true"), ("server.max_players", "4")],
    };
    let Config { session, listen, .. } = given.load().unwrap().config;
    assert_eq!((session.name.as_str(), session.motd.as_str()), ("file", "env"));
    assert_eq!((session.max_players, session.tick_rate, session.open), (4, 3, true));
    assert_eq!(listen, ["127.0.0.1:21068".parse().unwrap()]);
}

#[test]
fn what_a_layer_does_not_say_stays_whatever_the_key() {
    // Each key by the file, while the environment says something about another.
    for Case(key, toml, ..) in CASES {
        let file = format!("{key} = {toml}");
        let (other, value) = match key {
            "server.motd" => ("CAVES__SERVER__NAME", "other"),
            _ => ("CAVES__SERVER__MOTD", "other"),
        };
        let mut expected = parse(&file);
        match key {
            "server.motd" => expected.session.name = "other".into(),
            _ => expected.session.motd = "other".into(),
        }
        let given = Given { file: &file, env: &[(other, value)], set: &[] };
        assert_eq!(everything(&given.load().unwrap().config), everything(&expected), "{key}");
    }
}

#[test]
fn lists_of_clients_and_bans_are_replaced_as_a_whole() {
    let file = "[[client]]\nclient_type = 1\n[[client]]\nclient_type = 2\n[[ban]]\nname = \"a\"\n";
    let types = |set: &[_]| -> Vec<u16> {
        let config = Given { file, env: &[], set }.load().unwrap().config;
        assert_eq!(config.session.bans.len(), 1);
        config.session.clients.iter().map(|client| client.client_type.0).collect()
    };
    assert_eq!(types(&[]), [1, 2]);
    assert_eq!(types(&[("client", "[{ client_type = 3 }]")]), [3]);
    assert_eq!(types(&[("client", "[]")]), [0_u16; 0]);
}

#[test]
fn a_socket_and_its_permissions_may_come_from_different_layers() {
    let control = |file, set| Given { file, env: &[], set }.load().unwrap().config.control;
    let expected = |socket: &str, mode| Some(ControlConfig { socket: socket.into(), mode });
    let file = "[control]\nsocket = \"\"\nmode = \"0660\"\n";
    assert_eq!(control(file, &[]), None);
    // 0660 is 6 * 64 + 6 * 8.
    assert_eq!(control(file, &[("control.socket", "a.sock")]), expected("a.sock", 432));
    assert_eq!(control("", &[("control.mode", "0660")]), expected("caves.sock", 432));
    assert_eq!(control("", &[("control.socket", "")]), None);
}

#[test]
fn a_value_is_a_text_where_a_text_is_needed() {
    let name = |value| with_set(&[("server.name", value)]).unwrap().session.name;
    for text in ["My caves", "20", "true", "[x]", "a = b", "12:30:00", "\"half", "#1", " spaced "] {
        assert_eq!(name(text), text);
    }
    for quoted in ["\"a b\"", "'a b'", "\"a\\u0020b\"", " \"a b\" # said"] {
        assert_eq!(name(quoted), "a b", "{quoted}");
    }
    let mode = |value| with_set(&[("control.mode", value)]).unwrap().control.unwrap().mode;
    assert_eq!((mode("600"), mode("0600"), mode("\"0600\"")), (384, 384, 384));
    let store = with_env(&[("CAVES__WORLD__STORE", "memory")]).unwrap().store;
    assert_eq!(store, StoreConfig::Memory);
}

#[test]
fn a_list_of_texts_may_have_commas_between_them() {
    let exempt = |value| {
        let config = with_set(&[("limits.exempt", value)]).unwrap();
        let networks = config.session.strangers.exempt;
        networks.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(exempt("10.0.0.0/8,::1"), ["10.0.0.0/8", "::1/128"]);
    assert_eq!(exempt(" 10.0.0.0/8 , ::1, "), ["10.0.0.0/8", "::1/128"]);
    assert_eq!(exempt("\"10.0.0.0/8,::1\""), ["10.0.0.0/8", "::1/128"]);
    assert_eq!(exempt("[\"10.0.0.0/8\", '::1']"), ["10.0.0.0/8", "::1/128"]);
    assert!(exempt("").is_empty() && exempt("[]").is_empty());
}

#[test]
fn a_value_outside_the_file_that_cannot_be_is_shown_with_where_it_was_given() {
    assert_eq!(
        error_of_set("server.tick_rate", "50"),
        "--set server.tick_rate: server.tick_rate: 50 is not within 1 to 20
  |
1 | server.tick_rate = 50
  |                    ^^"
    );
    assert_eq!(
        with_env(&[("CAVES__Server__Open", "maybe")]).unwrap_err().to_string(),
        "environment CAVES__Server__Open: server.open: invalid type: string \"maybe\", expected a \
         boolean
  |
1 | server.open = \"maybe\"
  |               ^^^^^^^"
    );
    assert_eq!(
        error_of_set("server.listen", "127.0.0.1:1,here"),
        "--set server.listen: server.listen: \"here\" is no \"ADDRESS:PORT\"
  |
1 | server.listen = [\"127.0.0.1:1\", \"here\"]
  |                                 ^^^^^^"
    );
    assert_eq!(
        first_line(&error_of_set("client", "[{ name = \"x\" }]")),
        "--set client: client: missing field `client_type`"
    );
}

#[test]
fn the_first_layer_that_is_wrong_is_the_one_that_is_shown() {
    let env = [("CAVES__SERVER__TICK_RATE", "0")];
    let set = [("server.tick_rate", "21")];
    let told = |file| {
        let error = Given { file, env: &env, set: &set }.load().unwrap_err().to_string();
        first_line(&error).rsplit('/').next().unwrap().to_owned()
    };
    let wrong = "is not within 1 to 20";
    assert_eq!(
        told("[server]\ntick_rate = 22"),
        format!("config.toml:2: server.tick_rate: 22 {wrong}")
    );
    assert_eq!(
        told(""),
        format!("environment CAVES__SERVER__TICK_RATE: server.tick_rate: 0 {wrong}")
    );
}

#[test]
fn one_value_cannot_set_another_key() {
    for value in ["5\nserver.motd = \"x\"", "5\n[world]\nseed = 1", "5\r\nworld.seed = 1", "5 }"] {
        let told = error_of_set("server.max_players", value);
        let start = "--set server.max_players: server.max_players: invalid type: string ";
        assert!(told.starts_with(start), "{told}");
    }
    let config = with_set(&[("world.store", "a\"\nseed = 1")]).unwrap_err().to_string();
    let end = "world.store: it holds control or invisible characters";
    assert_eq!(first_line(&config), format!("--set world.store: {end}"));
}

#[test]
fn variables_of_others_are_ignored_and_unknown_ones_of_ours_are_named() {
    let others = [("CAVES_SERVER__NAME", "x"), ("CAVES", "x"), ("XCAVES__A", "x"), ("HOME", "x")];
    assert_eq!(everything(&with_env(&others).unwrap()), everything(&Config::default()));
    for (name, key) in [
        ("CAVES__SERVER__TICKRATE", "server.tickrate"),
        ("CAVES__SERVER", "server"),
        ("CAVES__SERVER_NAME", "server_name"),
        ("caves__client__token", "client.token"),
        ("CAVES__", ""),
        ("CAVES__É", "É"),
    ] {
        let hint = "--print-config shows all";
        assert_eq!(
            with_env(&[(name, "0x123456789a")]).unwrap_err().to_string(),
            format!("environment {name}: there is no key \"{key}\"; {hint}")
        );
    }
    assert_eq!(
        error_of_set("Server.name", "x"),
        "--set Server.name: there is no key \"Server.name\"; --print-config shows all"
    );
}

#[test]
fn two_variables_for_one_key_are_refused_whatever_their_order() {
    let (upper, lower) = (("CAVES__SERVER__NAME", "a"), ("caves__server__name", "b"));
    for env in [[upper, lower], [lower, upper]] {
        assert_eq!(
            with_env(&env).unwrap_err().to_string(),
            "environment caves__server__name: server.name is set by CAVES__SERVER__NAME already"
        );
    }
}

#[test]
fn a_variable_that_is_no_text_is_named() {
    let bytes = OsString::from_vec(vec![b'a', 0xFF]);
    let source = ConfigSource::new(None).with_env([("CAVES__SERVER__NAME".into(), bytes.clone())]);
    assert_eq!(source.unwrap_err().to_string(), "environment CAVES__SERVER__NAME: it is not UTF-8");
    ConfigSource::new(None).with_env([("OTHER".into(), bytes)]).unwrap();
}

#[test]
fn a_source_reads_the_file_again_and_keeps_the_rest() {
    let dir = TempDir::new();
    let path = dir.file("config.toml", "server.motd = \"one\"\nserver.name = \"file\"\n");
    let source = (ConfigSource::new(Some(path)).with_set("server.name", "set")).unwrap();
    let said = || {
        let session = source.load().unwrap().config.session;
        (session.motd, session.name)
    };
    assert_eq!(said(), ("one".to_owned(), "set".to_owned()));
    dir.file("config.toml", "server.motd = \"two\"\n");
    assert_eq!(said(), ("two".to_owned(), "set".to_owned()));
    dir.file("config.toml", "server.motd = 2\n");
    assert!(source.load().is_err());
    dir.file("config.toml", "");
    assert_eq!(said(), (String::new(), "set".to_owned()));
}

#[test]
fn what_was_read_is_described() {
    let given = Given {
        file: "",
        env: &[("CAVES__SERVER__NAME", "x"), ("CAVES__LOG__LEVEL", "warn")],
        set: &[("server.open", "true")],
    };
    let description = given.load().unwrap().description;
    let (file, rest) = description.split_once(", ").unwrap();
    assert!(file.ends_with("/config.toml"), "{file}");
    assert_eq!(
        rest,
        "environment CAVES__LOG__LEVEL, environment CAVES__SERVER__NAME, --set server.open"
    );
}

#[test]
fn the_configuration_in_effect_says_where_each_value_comes_from() {
    let given = Given {
        file: "\
# a comment
server = { name = \"Mo\\\"ria\", open = true }
ban = [
  { address = \"192.0.2.0/24\", reason = \"spam\" },
  { name = \"Mallory\" },
]
limits.exempt = []

[world]
seed = \"0xffffffffffffffff\"

[[client]]
client_type = 7

[[client]]
client_type = 8
name = \"Ada\"
token = \"0x123456789abcdef0\"
",
        env: &[("CAVES__SERVER__LISTEN", "0.0.0.0:5,[::]:5"), ("CAVES__CONTROL__SOCKET", "")],
        set: &[("server.max_players", "20"), ("server.open", "false")],
    };
    let loaded = given.load().unwrap();
    // The directory is another each time.
    let (path, _) = loaded.description.split_once("config.toml").unwrap();
    let expected = "\
# The configuration in effect, each value with where it comes from.
# Read: config.toml, environment CAVES__CONTROL__SOCKET, environment CAVES__SERVER__LISTEN, \
        --set server.max_players, --set server.open
# Tokens are hidden: this cannot be read back before they are put in again.

[server]
name = 'Mo\"ria' # config.toml:2
motd = \"\" # default
listen = [\"0.0.0.0:5\", \"[::]:5\"] # environment CAVES__SERVER__LISTEN
max_players = 20 # --set server.max_players
tick_rate = 10 # default
threads = 1 # default
open = false # --set server.open

[world]
seed = \"0xffffffffffffffff\" # config.toml:10
store = \"caves.redb\" # default
save_interval_s = 1 # default

[session]
timeout_s = 10 # default

[limits]
strangers_per_second = 10 # default
strangers_burst = 20 # default
strangers_total_per_second = 2000 # default
sessions_per_address = 8 # default
exempt = [] # config.toml:7

[[client]] # config.toml:12
client_type = 7
allow = true
from = [\"127.0.0.0/8\", \"::1/128\"]
tags = false
[[client]] # config.toml:15
client_type = 8
name = \"Ada\"
allow = true
token = # <hidden>
from = [\"127.0.0.0/8\", \"::1/128\"]
tags = false

[[ban]] # config.toml:4
address = \"192.0.2.0/24\"
reason = \"spam\"
[[ban]] # config.toml:5
name = \"Mallory\"
reason = \"banned\"

[control]
socket = \"\" # environment CAVES__CONTROL__SOCKET
# no mode: default

[metrics]
listen = \"\" # default

[log]
level = \"info\" # default
format = \"text\" # default
";
    assert_eq!(loaded.effective().replace(path, ""), expected);
    // Nobody takes it for a configuration in which Ada has no token.
    let refused = Config::parse("x", &loaded.effective()).unwrap_err().to_string();
    assert!(refused.contains("token = # <hidden>"), "{refused}");
    // And with the token it is the same again.
    let whole = loaded.effective().replace("# <hidden>", "\"0x123456789abcdef0\"");
    assert_eq!(everything(&parse(&whole)), everything(&loaded.config));
}

#[test]
fn the_configuration_in_effect_can_be_read_back() {
    for file in ["", Config::TEMPLATE] {
        let loaded = Given { file, env: &[], set: &[] }.load().unwrap();
        assert_eq!(everything(&parse(&loaded.effective())), everything(&Config::default()));
    }
    for Case(key, toml, ..) in CASES {
        let loaded = Given { file: "", env: &[], set: &[(key, toml)] }.load().unwrap();
        let text = loaded.effective().replace("# <hidden>", "\"0x123456789a\"");
        assert_eq!(everything(&parse(&text)), everything(&loaded.config), "{key}");
        let origin = format!("--set {key}");
        assert_eq!(text.matches(&format!("# {origin}\n")).count(), 1, "{text}");
        assert_eq!(loaded.origins.of(key).unwrap().to_string(), origin);
        let others = CASES.iter().filter(|case| case.0 != key);
        assert!(others.into_iter().all(|case| loaded.origins.of(case.0).is_none()), "{key}");
    }
}

#[test]
fn the_configuration_in_effect_has_all_keys() {
    let set: Vec<_> = CASES.iter().map(|case| (case.0, case.1)).collect();
    let loaded = Given { file: "", env: &[], set: &set }.load().unwrap();
    let text = loaded.effective().replace("# <hidden>", "\"0x123456789a\"");
    let table: toml::Table = text.parse().unwrap();
    for key in keys_of_the_template() {
        let found = match key.split_once('.') {
            Some((outer, inner)) => table[outer].get(inner),
            None => table.get(&key),
        };
        assert!(found.is_some(), "{key}");
    }
}

#[test]
fn a_name_of_a_file_does_not_leave_its_comment() {
    let dir = TempDir::new();
    let path = dir.file("a\nserver.open = true #", "server.name = \"x\"");
    let loaded = ConfigSource::new(Some(path)).load().unwrap();
    assert!(!parse(&loaded.effective()).session.open);
}

/// Digits of the tokens of the next test; nothing else there has any of them.
const SECRETS: [&str; 3] = ["8d3f00c1a5b2e497", "77aa77aa77aa77aa", "10178301868413658263"];

#[test]
fn tokens_are_in_nothing_that_is_printed() {
    let client = |name: &str, token: &str| {
        format!("[[client]]\nclient_type = 1\nname = \"{name}\"\ntoken = {token}\n")
    };
    let (a, b) = (client("A", "\"0x8d3f00c1a5b2e497\""), client("B", "\"0x77aa77aa77aa77aa\""));
    let loaded = Given { file: &format!("{a}{b}"), env: &[], set: &[] }.load().unwrap();
    let source = (ConfigSource::new(None))
        .with_env([variable("CAVES__CLIENT", "[{ token = \"0x8d3f00c1a5b2e497\" }]")])
        .unwrap();
    let mut printed = vec![
        loaded.effective(),
        loaded.description.clone(),
        format!("{:?}", loaded.origins),
        format!("{source:?}"),
        source.load().unwrap_err().to_string(),
        error_of_set("client", "0x77aa77aa77aa77aa"),
        error_of_set("client", "0x8d3f00c1a5b2e497"),
    ];
    // Each of these is refused, with the token's line as the place.
    let again = client("C", "\"0x8D3F00C1A5B2E497\"");
    for wrong in [
        format!("{a}{again}"),
        client("A", "0x8d3f00c1a5b2e497"),
        client("A", "10178301868413658263"),
        client("A", "\"0x8d3f00c1a5b2e4970\""),
        client("A", "\"8d3f00c1a5b2e497\""),
        client("A", "'0x8d3f00c1a5b2e497"),
        "[[client]]\nclient_type = 1\ntoken = \"0x8d3f00c1a5b2e497\"".to_owned(),
        "[[client]]\nclient_type = 1\ntokn = \"0x8d3f00c1a5b2e497\" # the token".to_owned(),
    ] {
        let error = Config::parse("config.toml", &wrong).unwrap_err();
        printed.extend([error.to_string(), format!("{error:?}")]);
        printed.extend([error_of_set("client", &wrong), error_of_set("server.open", &wrong)]);
    }
    for text in printed {
        let lower = text.to_lowercase();
        for secret in SECRETS {
            assert!(!lower.contains(secret), "{text}");
        }
    }
}

#[test]
fn a_token_in_an_error_is_stars_and_the_carets_stay_below_it() {
    let file = "[[client]]\nclient_type = 1\ntoken = \"0x8d3f00c1a5b2e497\" # Ada's\n";
    assert_eq!(
        Config::parse("config.toml", file).unwrap_err().to_string(),
        "config.toml:3: client.token: a registered client needs a name beside its token
  |
3 | token = \"******************\" # Ada's
  |         ^^^^^^^^^^^^^^^^^^^^"
    );
    assert_eq!(
        Config::parse("config.toml", "client = [{ client_type = 1, token = 77 }]")
            .unwrap_err()
            .to_string(),
        "config.toml:1: client.token: expected \"0x\" and up to 16 hexadecimal digits
  |
1 | client = [{ client_type = 1, token = 77 }]
  |                                      ^^"
    );
}

#[test]
fn each_change_is_told_by_its_key_and_whether_it_needs_a_restart() {
    let old = Config::default();
    assert!(old.changes(&old).is_empty());
    for Case(key, toml, _, while_running) in CASES {
        let new = parse(&format!("{key} = {toml}"));
        let changes = old.changes(&new);
        let (there, elsewhere) = match while_running {
            true => (&changes.applied, &changes.need_restart),
            false => (&changes.need_restart, &changes.applied),
        };
        assert_eq!((&there[..], elsewhere.len()), (&[key][..], 0));
        assert_eq!(new.changes(&old), changes, "{key}: back again");
        assert!(!changes.is_empty());
        let expected = if while_running { &new } else { &old };
        assert_eq!(everything(&old.reloaded(&new)), everything(expected), "{key}");
    }
}

#[test]
fn a_reload_of_everything_applies_what_it_can() {
    let all = CASES.map(|Case(key, toml, ..)| format!("{key} = {toml}\n")).concat();
    let those = |while_running: bool| -> Vec<&str> {
        CASES.iter().filter(|case| case.3 == while_running).map(|case| case.0).collect()
    };
    let (old, new) = (Config::default(), parse(&all));
    let changes = old.changes(&new);
    assert_eq!(changes.applied, those(RUNNING));
    assert_eq!(changes.need_restart, those(RESTART));
    let running: String = (CASES.iter().filter(|case| case.3))
        .map(|Case(key, toml, ..)| format!("{key} = {toml}\n"))
        .collect();
    let reloaded = old.reloaded(&new);
    assert_eq!(everything(&reloaded), everything(&parse(&running)));
    // What waits for a restart is told again at the next reload.
    assert_eq!(reloaded.changes(&new).need_restart, those(RESTART));
    assert!(reloaded.changes(&new).applied.is_empty());
}

#[test]
fn no_commands_and_other_permissions_are_changes_too() {
    let old = Config::default();
    let none = parse("control.socket = \"\"");
    let told = old.changes(&none).need_restart;
    assert_eq!(told, ["control.socket", "control.mode"]);
    assert_eq!(old.reloaded(&none).control, old.control);
    assert_eq!(none.reloaded(&old).control, None);
    let memory = parse("world.store = \"memory\"");
    assert_eq!(old.changes(&memory).need_restart, ["world.store"]);
    assert_eq!(old.reloaded(&memory).store, StoreConfig::File(PathBuf::from("caves.redb")));
}
