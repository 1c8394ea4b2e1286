use std::time::Duration;

use caves_game::mirror::MessageKind;
use caves_game::{Client, ServerConfig};
use caves_session::caves::ServerConfig as SessionConfig;
use caves_world::KindId;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use ratatui::buffer::Buffer;

use super::*;
use crate::app::{Home, Verb};
use crate::keys::{self, Key, Where};
use crate::line::Line;
use crate::testing::{Caves, Player};
use crate::text;

const UNICODE: Theme = Theme { ascii: false, colour: true };
const ASCII: Theme = Theme { ascii: true, colour: false };

fn drawn(caves: &Caves, player: usize, theme: Theme, width: u16, height: u16) -> Buffer {
    let Player { app, client, .. } = &caves.players[player];
    let glyphs = Glyphs::new(client.mirror().content());
    let view = View { app, client, theme, glyphs: &glyphs, now: caves.now };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal
        .draw(|frame| {
            draw(frame, view);
        })
        .unwrap();
    terminal.backend().buffer().clone()
}

/// Rows of text, without the blanks at their ends.
fn rows(buffer: &Buffer) -> Vec<String> {
    let row = |y| {
        let (mut row, mut x) = (String::new(), 0);
        while x < buffer.area.width {
            let symbol = buffer[(x, y)].symbol();
            row.push_str(symbol);
            // The columns that a wide character covers are not printed.
            x += text::width(symbol).max(1) as u16;
        }
        row.trim_end().to_owned()
    };
    (0..buffer.area.height).map(row).collect()
}

fn shown(caves: &Caves) -> String {
    rows(&drawn(caves, 0, UNICODE, 80, 24)).join("\n")
}

fn press(caves: &mut Caves, keys: &[Key]) {
    let now = caves.now;
    let Player { app, client, .. } = &mut caves.players[0];
    keys.iter().for_each(|key| app.handle_key(*key, client, now));
}

fn alone(name: &str) -> Caves {
    let mut caves = Caves::new(ServerConfig { seed: 7, ..ServerConfig::default() });
    caves.enter(name, Home::Alone { seed: 7, is_kept: false });
    caves.run_for(1000);
    caves
}

/// Two players, one of whom has said something.
fn company() -> Caves {
    let mut caves = alone("Ada");
    caves.players[0].app.home = Home::Server { address: "caves.example:21068".into() };
    caves.enter("Bob", Home::Server { address: "caves.example:21068".into() });
    caves.run_for(500);
    let east = caves_world::Direction::East;
    caves.players[1].client.act(caves_world::Command::Move(east)).unwrap();
    caves.run_for(300);
    caves.players[1].client.act(caves_world::Command::Say("Anybody here?".into())).unwrap();
    caves.run_for(300);
    caves
}

#[test]
fn playing_alone_shows_the_seed_and_what_one_might_do() {
    insta::assert_snapshot!(shown(&alone("Ada")), @r###"
     Forgotten Caves, alone                       <1 ms · loss 0% · tick 1410065418
              ▒▒▒""▒▒▒▒▒≈≈≈≈≈≈≈≈≈""░░""ⁿ""""          │Ada
              ▒▒▒"""ⁿ"""≈≈≈≈≈≈≈≈""▒▒▒▒""·"""          │hp ████████████████████ 20/20
              ▒▒◊·▲"""""≈≈≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒ⁿ          │elo 1000  at 16, 16
              :·:""""""""≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒▒▒          │safe
              :▒▒▒""▒▒"""········▒▒▒▒▒▒▒▒▒▒▒          │seed 0x0000000000000007
              ▒▒▒▒""▒▒▒""·········▒▒▒▒▒▒▒▒▒▒          │this world is not kept
              ▒▒▒":"▒▒"ⁿ▲····¶····▒▒▒·ⁿ::▒▒"          │─ in view ───────────────────
              ▒▒▒:·"""ⁿⁿ"·········"""":···::          │¶ sign                    2 ↑
              ▒▒▒▒ⁿ"""ⁿ""····@····"·""··::::          │/ torch                   9 ←
              ▓▒▒▒:ⁿ"/ⁿ""·········""::···:··          │- bone                   16 ↘
              ▒▒▒▒▒:"""""·········▒"::·:·:::          │r cave rat          6/6  17 ↙
              ▒▒▒▒▒""""ⁿⁿ·········▒▒·:·:·:·▒          │$ coin                   21 ↖
              ░▒▒░▒::"▒▒▒········▒▒▒▒▒:·:·▒▒          │
              "░▒░░""▒▒▒▒··::::·▒▒▒▒▒▒▒:·:▒▒          │
              "░"░▒""·▒▒▒·:·····▒▒▒▒▒▓▒-··:▒          │
              """"·:···::::▒▒:::·▒▒▓▓▒▓▓···:          │
    ────────────────────────────────────────────────────────────────────────────────


     You are alone in these caves.
     The arrow keys walk and fight; ? help, d dig, a attack, e use, g take, i bag,
       x look, t talk, m log, q quit.
     ? help  d dig  a attack  e use  g take  i bag  x look  t talk  m log  q quit
    "###);
}

#[test]
fn another_player_is_near_and_is_heard() {
    insta::assert_snapshot!(shown(&company()), @r#"
     Forgotten Caves (caves.example:21068)        <1 ms · loss 0% · tick 1410065429
              ▒▒▒""▒▒▒▒▒≈≈≈≈≈≈≈≈≈""░░""ⁿ""""          │Ada
              ▒▒▒"""ⁿ"""≈≈≈≈≈≈≈≈""▒▒▒▒""·"""          │hp ████████████████████ 20/20
              ▒▒◊·▲"""""≈≈≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒ⁿ          │elo 1000  at 16, 16
              :·:""""""""≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒▒▒          │safe
              :▒▒▒""▒▒"""········▒▒▒▒▒▒▒▒▒▒▒          │
              ▒▒▒▒""▒▒▒""·········▒▒▒▒▒▒▒▒▒▒          │
              ▒▒▒":"▒▒"ⁿ▲····¶····▒▒▒·ⁿ::▒▒"          │─ in view ───────────────────
              ▒▒▒:·"""ⁿ Anybody here? :···::          │@ Bob             20/20   1 →
              ▒▒▒▒ⁿ"""ⁿ""····@@···"·""··::::          │¶ sign                    2 ↑
              ▓▒▒▒:ⁿ"/ⁿ""·········""::···:··          │/ torch                   9 ←
              ▒▒▒▒▒:"""""·········▒"::·:·:::          │- bone                   16 ↘
              ▒▒▒▒▒""""ⁿⁿ·········▒▒·:·:·:·▒          │r cave rat          6/6  17 ↙
              ░▒▒░▒::"▒▒▒········▒▒▒▒▒:·:·▒▒          │$ coin                   21 ↖
              "░▒░░""▒▒▒▒··::::·▒▒▒▒▒▒▒:·:▒▒          │
              "░"░▒""·▒▒▒·:·····▒▒▒▒▒▓▒-··:▒          │
              """"·:···::::▒▒:::·▒▒▓▓▒▓▓···:          │
    ────────────────────────────────────────────────────────────────────────────────

     You are alone in these caves.
     The arrow keys walk and fight; ? help, d dig, a attack, e use, g take, i bag,
       x look, t talk, m log, q quit.
     Bob: Anybody here?
     ? help  d dig  a attack  e use  g take  i bag  x look  t talk  m log  q quit
    "#);
}

#[test]
fn the_same_in_ascii() {
    insta::assert_snapshot!(rows(&drawn(&company(), 0, ASCII, 80, 24)).join("\n"), @r###"
     Forgotten Caves (caves.example:21068)        <1 ms | loss 0% | tick 1410065429
              %%%""%%%%%~~~~~~~~~""##"",""""          |Ada
              %%%""","""~~~~~~~~""%%%%""."""          |hp #################### 20/20
              %%*.^"""""~~~~~~~""%%%%%%%%%%,          |elo 1000  at 16, 16
              :.:""""""""~~~~~""%%%%%%%%%%%%          |safe
              :%%%""%%"""........%%%%%%%%%%%          |
              %%%%""%%%"".........%%%%%%%%%%          |
              %%%":"%%",^....P....%%%.,::%%"          |- in view -------------------
              %%%:.""", Anybody here? :...::          |@ Bob             20/20  1 E
              %%%%,""",""....@@...".""..::::          |P sign                   2 N
              &%%%:,"/,"".........""::...:..          |/ torch                  9 W
              %%%%%:""""".........%"::.:.:::          |- bone                  16 SE
              %%%%%"""",,.........%%.:.:.:.%          |r cave rat          6/6 17 SW
              #%%#%::"%%%........%%%%%:.:.%%          |$ coin                  21 NW
              "#%##""%%%%..::::.%%%%%%%:.:%%          |
              "#"#%"".%%%.:.....%%%%%&%-..:%          |
              """".:...::::%%:::.%%&&%&&...:          |
    --------------------------------------------------------------------------------

     You are alone in these caves.
     The arrow keys walk and fight; ? help, d dig, a attack, e use, g take, i bag,
       x look, t talk, m log, q quit.
     Bob: Anybody here?
     ? help  d dig  a attack  e use  g take  i bag  x look  t talk  m log  q quit
    "###);
}

#[test]
fn the_first_page_of_the_help() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('?')]);
    insta::assert_snapshot!(shown(&caves), @r###"
     Forgotten Caves, alone                       <1 ms · loss 0% · tick 1410065418
    ─ in the caves ─────────────────────────────────────── ─ on the map ────────────
     ↑ k 8        walk north, fight what stands there       ░ rock
     ← h 4        walk west                                 · cave floor
     → l 6        walk east                                 █ bedrock
     ↓ j 2        walk south                                ▒ granite
     ?            show this help                            ◊ crystal vein
     d            dig, then a direction                     ▓ coal seam
     a            attack, then a direction                  " moss
     e            open a chest, read a sign beside you      : gravel
     g ,          pick up what lies here                    ⁿ mushrooms
     i            inventory: see and drop things            ≈ shallow water
     x            look around                               ▲ stalagmite
     t            say something to all in view              @ you and other players
     Enter        use what is beside you, or else talk      r cave rat
     m            read older messages                       g ghoul
     q Ctrl-C     leave the caves                           b glow beetle
                                                            • stone
    ─ when a direction is asked ──────────────────────────  * crystal
     ↑ k 8        north                                     / torch
     ← h 4        west                                      = bread
     → l 6        east                                      $ coin
     ↓ j 2        south                                     - bone
     ↑ up  ↓ down  PgDn page  Esc back
    "###);
}

#[test]
fn help_has_every_key_and_its_explanation() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('?')]);
    // Wide and high enough for all of it.
    let text = rows(&drawn(&caves, 0, UNICODE, 120, 100)).join("\n");
    for place in Where::ALL {
        assert!(text.contains(place.title()), "{place:?}");
    }
    for row in keys::TABLE {
        let names: Vec<_> = row.keys.iter().map(|key| key.name(false)).collect();
        let line = text.lines().find(|line| {
            line.contains(&format!(" {} ", names.join(" "))) && line.contains(row.text)
        });
        assert!(line.is_some(), "{row:?}");
    }
    let content = caves.players[0].client.mirror().content();
    for (_, def) in content.tiles().filter(|(id, _)| *id != caves_world::TileId::UNKNOWN) {
        assert!(text.contains(&def.title), "{}", def.name);
    }
}

#[test]
fn help_can_be_scrolled_to_its_end() {
    let mut caves = alone("Ada");
    for (width, height) in [(80, 24), (40, 10), (20, 5)] {
        caves.players[0].app.mode = Mode::Help { down: usize::MAX };
        let text = rows(&drawn(&caves, 0, UNICODE, width, height)).join("\n");
        let last = if width < 76 { "something unknown" } else { "no, stay" };
        assert!(text.contains(&last[..last.len().min(14)]), "{width}x{height}:\n{text}");
    }
}

#[test]
fn an_empty_inventory_says_so() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('i')]);
    caves.run_for(300);
    insta::assert_snapshot!(shown(&caves), @r###"
     Forgotten Caves, alone                       <1 ms · loss 0% · tick 1410065421
              ▒▒▒""▒▒▒▒▒≈≈≈≈≈≈≈≈≈""░░""ⁿ""""          │Ada
              ▒▒▒"""ⁿ"""≈≈≈≈≈≈≈≈""▒▒▒▒""·"""          │hp ████████████████████ 20/20
              ▒▒◊·▲"""""≈≈≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒ⁿ          │elo 1000  at 16, 16
              :·:""""""""≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒▒▒          │safe
              :▒▒▒""▒▒"""········▒▒▒▒▒▒▒▒▒▒▒          │seed 0x0000000000000007
              ▒▒▒▒""▒▒▒""·········▒▒▒▒▒▒▒▒▒▒          │this world is not kept
              ▒▒▒":"▒▒"ⁿ▲····¶····▒▒▒·ⁿ::▒▒"          │─ inventory ─────────────────
              ▒▒▒:·"""ⁿⁿ"·········"""":···::          │You carry nothing.
              ▒▒▒▒ⁿ"""ⁿ""····@····"·""··::::          │
              ▓▒▒▒:ⁿ"/ⁿ""·········""::···:··          │
              ▒▒▒▒▒:"""""·········▒"::·:·:::          │
              ▒▒▒▒▒""""ⁿⁿ·········▒▒·:·:·:·▒          │
              ░▒▒░▒::"▒▒▒········▒▒▒▒▒:·:·▒▒          │
              "░▒░░""▒▒▒▒··::::·▒▒▒▒▒▒▒:·:▒▒          │
              "░"░▒""·▒▒▒·:·····▒▒▒▒▒▓▒-··:▒          │
              """"·:···::::▒▒:::·▒▒▓▓▒▓▓···:          │
    ────────────────────────────────────────────────────────────────────────────────


     You are alone in these caves.
     The arrow keys walk and fight; ? help, d dig, a attack, e use, g take, i bag,
       x look, t talk, m log, q quit.
     ↓ next  ↑ previous  d drop one  D drop all  Esc back
    "###);
}

#[test]
fn things_carried_are_listed_with_their_number() {
    let mut caves = alone("Ada");
    for _ in 0..40 {
        press(&mut caves, &[Key::Char('d'), Key::Up]);
        caves.run_for(250);
        press(&mut caves, &[Key::Up]);
        caves.run_for(250);
        press(&mut caves, &[Key::Char('g')]);
        caves.run_for(250);
    }
    press(&mut caves, &[Key::Char('i')]);
    caves.run_for(300);
    let text = shown(&caves);
    let row = text.lines().find(|line| line.contains("> • ")).unwrap_or_else(|| panic!("{text}"));
    assert!(row.trim_end().ends_with("stone"), "{row}");
    assert!(row.split_whitespace().any(|word| word.parse::<u16>().is_ok()), "{row}");
}

#[test]
fn what_is_looked_at_is_told_in_detail() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('x')]);
    caves.run_for(300);
    insta::assert_snapshot!(shown(&caves), @r###"
     Forgotten Caves, alone                       <1 ms · loss 0% · tick 1410065421
              ▒▒▒""▒▒▒▒▒≈≈≈≈≈≈≈≈≈""░░""ⁿ""""          │Ada
              ▒▒▒"""ⁿ"""≈≈≈≈≈≈≈≈""▒▒▒▒""·"""          │hp ████████████████████ 20/20
              ▒▒◊·▲"""""≈≈≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒ⁿ          │elo 1000  at 16, 16
              :·:""""""""≈≈≈≈≈""▒▒▒▒▒▒▒▒▒▒▒▒          │safe
              :▒▒▒""▒▒"""········▒▒▒▒▒▒▒▒▒▒▒          │seed 0x0000000000000007
              ▒▒▒▒""▒▒▒""·········▒▒▒▒▒▒▒▒▒▒          │this world is not kept
              ▒▒▒":"▒▒"ⁿ▲····¶····▒▒▒·ⁿ::▒▒"          │─ looking, 1 of 5 ───────────
              ▒▒▒:·"""ⁿⁿ"·········"""":···::          │¶ sign
              ▒▒▒▒ⁿ"""ⁿ""····@····"·""··::::          │2 steps N
              ▓▒▒▒:ⁿ"/ⁿ""·········""::···:··          │It reads: Welcome to the
              ▒▒▒▒▒:"""""·········▒"::·:·:::          │caves. Arrow keys walk,
              ▒▒▒▒▒""""ⁿⁿ·········▒▒·:·:·:·▒          │walking into a monster fights
              ░▒▒░▒::"▒▒▒········▒▒▒▒▒:·:·▒▒          │it. Nobody is hurt near this
              "░▒░░""▒▒▒▒··::::·▒▒▒▒▒▒▒:·:▒▒          │sign.
              "░"░▒""·▒▒▒·:·····▒▒▒▒▒▓▒-··:▒          │
              """"·:···::::▒▒:::·▒▒▓▓▒▓▓···:          │
    ────────────────────────────────────────────────────────────────────────────────


     You are alone in these caves.
     The arrow keys walk and fight; ? help, d dig, a attack, e use, g take, i bag,
       x look, t talk, m log, q quit.
     Tab next  Shift-Tab previous  Esc back
    "###);
}

#[test]
fn a_full_server_is_a_reason_and_a_countdown() {
    let session = SessionConfig { max_players: 1, ..SessionConfig::default() };
    let mut caves = Caves::new(ServerConfig { session, seed: 7, keep: None });
    let home = || Home::Server { address: "caves.example:21068".into() };
    caves.enter("Bob", home());
    caves.run_for(500);
    caves.enter("Ada", home());
    caves.run_for(200);
    insta::assert_snapshot!(rows(&drawn(&caves, 1, UNICODE, 80, 24)).join("\n"), @r#"
      Not let in: server full (all places are taken); trying again in 1 s  caves.e…
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
         Not let in: server full (all places are      │
               taken); trying again in 1 s            │
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
                                                      │
    ────────────────────────────────────────────────────────────────────────────────




     Not let in: server full (all places are taken); trying again.
     ? help  d dig  a attack  e use  g take  i bag  x look  t talk  m log  q quit
    "#);
}

#[test]
fn a_lost_server_leaves_the_last_picture_and_is_looked_for() {
    let mut caves = company();
    let before = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    caves.cut_off = true;
    caves.run_for(1100);
    let top = rows(&drawn(&caves, 0, UNICODE, 80, 24)).remove(0);
    assert!(top.contains("no answer for 1 s "), "{top}");
    caves.run_for(2000);
    let lost = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    assert_eq!(lost[1..17], before[1..17], "map and side as they were");
    insta::assert_snapshot!(lost[0], @r###"  no answer for 3 s, looking for the server  Forgotten Caves (caves.example:21…"###);
    caves.cut_off = false;
    caves.run_for(6000);
    let back = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    assert!(!back[0].contains("no answer"), "{}", back[0]);
    assert!(back.iter().any(|row| row.contains("The connection is back.")), "{back:#?}");
}

#[test]
fn a_server_that_never_answers_is_said_to_be_silent() {
    let mut caves = Caves::new(ServerConfig::default());
    caves.cut_off = true;
    caves.enter("Ada", Home::Server { address: "caves.example:21068".into() });
    caves.run_for(500);
    assert!(shown(&caves).contains("joining caves.example:21068"));
    caves.run_for(4000);
    let text = shown(&caves);
    assert!(text.contains("no answer from caves.example:21068 for 4 s, still asking"), "{text}");
}

#[test]
fn quitting_is_a_question_below_the_picture() {
    let mut caves = alone("Ada");
    let before = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    press(&mut caves, &[Key::Char('q')]);
    let asked = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    assert_eq!(asked[..23], before[..23]);
    insta::assert_snapshot!(asked[23], @" Leave the caves?  y yes  n no");
}

#[test]
fn a_direction_is_asked_for() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('d')]);
    insta::assert_snapshot!(
        rows(&drawn(&caves, 0, UNICODE, 80, 24))[23],
        @" Dig where? An arrow, or hjkl.  Esc never mind"
    );
}

#[test]
fn what_is_typed_stands_in_the_last_line() {
    let mut caves = alone("Ada");
    press(&mut caves, &[Key::Char('t'), Key::Char('h'), Key::Char('i')]);
    insta::assert_snapshot!(rows(&drawn(&caves, 0, UNICODE, 80, 24))[23], @" Say: hi");
    let mut line = Line::default();
    line.paste(&"0123456789".repeat(17));
    caves.players[0].app.mode = Mode::Say(line);
    let last = rows(&drawn(&caves, 0, UNICODE, 80, 24)).remove(23);
    assert!(last.ends_with("6789  30 left"), "{last}");
}

#[test]
fn older_messages_can_be_read() {
    let mut caves = alone("Ada");
    for i in 0..60 {
        caves.players[0].client.tell(format!("line {i}"));
    }
    press(&mut caves, &[Key::Char('m')]);
    let text = shown(&caves);
    assert!(text.contains(" line 59\n") && text.contains(" line 39\n"), "{text}");
    assert!(!text.contains(" line 38\n"), "{text}");
    caves.players[0].app.mode = Mode::Log { up: 20 };
    let text = shown(&caves);
    assert!(text.contains(" line 39\n") && !text.contains(" line 40\n"), "{text}");
    caves.players[0].app.mode = Mode::Log { up: usize::MAX };
    assert!(shown(&caves).contains("You are alone in these caves."));
}

#[test]
fn narrow_screens_have_oneself_in_a_line() {
    let caves = company();
    insta::assert_snapshot!(rows(&drawn(&caves, 0, UNICODE, 40, 12)).join("\n"), @r###"
     Forgotten Caves (cave… <1 ms · loss 0%
    hp 20/20 elo 1000 at 16, 16 safe
         ▒▒▒▒""▒▒▒""·········▒▒▒▒▒▒▒▒▒▒
         ▒▒▒":"▒▒"ⁿ▲····¶····▒▒▒·ⁿ::▒▒"
         ▒▒▒:·"""ⁿ Anybody here? :···::
         ▒▒▒▒ⁿ"""ⁿ""····@@···"·""··::::
         ▓▒▒▒:ⁿ"/ⁿ""·········""::···:··
         ▒▒▒▒▒:"""""·········▒"::·:·:::
         ▒▒▒▒▒""""ⁿⁿ·········▒▒·:·:·:·▒
       i bag, x look, t talk, m log, q quit.
     Bob: Anybody here?
     ? help  d dig  a attack  e use  g take
    "###);
}

/// Every mode, entered with what it needs.
fn modes(client: &Client) -> Vec<Mode> {
    let target = client.mirror().figures().first().map_or(caves_world::EntityId(1), |of| of.id);
    let mut line = Line::default();
    line.paste(&"ab 世界 ".repeat(30));
    vec![
        Mode::Walk,
        Mode::Aim(Verb::Dig),
        Mode::Aim(Verb::Interact),
        Mode::Look { target },
        Mode::Bag { row: usize::MAX },
        Mode::Say(Line::default()),
        Mode::Say(line),
        Mode::Quit { back: Box::new(Mode::Look { target: caves_world::EntityId(9999) }) },
        Mode::Log { up: 3 },
        Mode::Help { down: 7 },
    ]
}

#[test]
fn every_size_is_drawn_in_every_mode() {
    let mut playing = company();
    playing.players[0].client.tell("A line that is longer than most of these screens are wide.");
    let mut joining = Caves::new(ServerConfig::default());
    joining.enter("", Home::Server { address: "caves.example:21068".into() });
    let sizes = (0..=40).flat_map(|width| (0..=20).map(move |height| (width, height))).chain([
        (59, 24),
        (60, 15),
        (80, 24),
        (81, 7),
        (200, 3),
        (3, 100),
        (300, 120),
    ]);
    for (width, height) in sizes {
        for caves in [&mut playing, &mut joining] {
            for mode in modes(&caves.players[0].client) {
                for theme in [UNICODE, ASCII] {
                    caves.players[0].app.mode = mode.clone();
                    drawn(caves, 0, theme, width, height);
                }
            }
        }
    }
}

#[test]
fn one_cell_shows_oneself() {
    assert_eq!(rows(&drawn(&company(), 0, UNICODE, 1, 1)), ["@"]);
}

#[test]
fn ascii_means_nothing_but_ascii_and_no_colour_means_none() {
    let mut caves = company();
    caves.enter("Zoë 世界", Home::Alone { seed: 1, is_kept: false });
    caves.run_for(500);
    caves.players[2].client.act(caves_world::Command::Say("世界 \u{1F600} é".into())).unwrap();
    caves.run_for(500);
    for mode in modes(&caves.players[0].client) {
        caves.players[0].app.mode = mode;
        let buffer = drawn(&caves, 0, ASCII, 80, 24);
        for cell in buffer.content() {
            assert!(cell.symbol().is_ascii(), "{:?}", cell.symbol());
            let colours = (cell.fg, cell.bg);
            assert_eq!(colours, (ratatui::style::Color::Reset, ratatui::style::Color::Reset));
        }
    }
}

/// Names as players may have them, and some that only a hostile server sends.
const NAMES: [&str; 8] = [
    "世界世界世界世界世界",
    "e\u{301}\u{301}\u{301}\u{301}\u{301}\u{301}",
    "\u{1F469}\u{200D}\u{1F680}\u{1F600}",
    "ﷺﷺﷺ",
    "a\u{1b}[2Jb",
    "\u{202E}drow\u{200B}",
    "各各各各各各各各各各",
    "12345678901234567890123456789012",
];

#[test]
fn whether_a_world_is_kept_is_said_as_it_is() {
    let mut caves = alone("Ada");
    assert!(shown(&caves).contains("this world is not kept"));
    caves.players[0].app.home = Home::Alone { seed: 7, is_kept: true };
    let kept = shown(&caves);
    assert!(kept.contains("this world is kept") && !kept.contains("not kept"));
}

#[test]
fn names_and_texts_never_break_the_columns() {
    let mut caves = company();
    for name in NAMES {
        if caves_session::caves::check_name(name.as_bytes()).is_ok() {
            caves.enter(name, Home::Alone { seed: 1, is_kept: false });
        }
    }
    caves.run_for(1000);
    for player in 2..caves.players.len() {
        let said = caves_world::Command::Say(NAMES.concat());
        caves.players[player].client.act(said).unwrap();
    }
    caves.run_for(500);
    for name in NAMES {
        caves.players[0].client.tell(name);
    }
    assert!(caves.players.len() > 6, "most of the names are allowed");
    for width in [60, 61, 75, 80, 81, 100] {
        for row in rows(&drawn(&caves, 0, UNICODE, width, 30)) {
            assert!(text::width(&row) <= usize::from(width), "{row}");
            assert!(!row.contains(char::is_control), "{row:?}");
        }
        let buffer = drawn(&caves, 0, UNICODE, width, 30);
        let edge = Areas::of(buffer.area).edge;
        for y in edge.top()..edge.bottom() {
            assert_eq!(buffer[(edge.x, y)].symbol(), "│", "row {y} of width {width}");
            for x in 0..edge.x {
                assert_eq!(text::width(buffer[(x, y)].symbol()), 1, "{x}, {y}");
            }
        }
    }
}

#[test]
fn messages_are_told_apart_by_colour() {
    let caves = company();
    let kinds: Vec<_> =
        caves.players[0].client.mirror().messages().iter().map(|message| message.kind).collect();
    assert_eq!(kinds, [MessageKind::Local, MessageKind::Local, MessageKind::Chat]);
    let buffer = drawn(&caves, 0, UNICODE, 80, 24);
    let colour_of = |start: &str| {
        let row = rows(&buffer).iter().position(|row| row.starts_with(start)).unwrap();
        buffer[(1, row as u16)].fg
    };
    assert_ne!(colour_of(" Bob: Anybody"), colour_of(" You are alone"));
}

#[test]
fn remembered_tiles_are_faint_and_unseen_ones_blank() {
    let mut caves = alone("Ada");
    let seen = rows(&drawn(&caves, 0, UNICODE, 80, 24));
    for _ in 0..3 {
        press(&mut caves, &[Key::Right]);
        caves.run_for(300);
    }
    let buffer = drawn(&caves, 0, UNICODE, 80, 24);
    // The player stands in column 25; the viewport reaches 15 to the west. Three columns further
    // is what is remembered, and beyond that nothing was ever seen.
    for y in 1..17 {
        let row = &rows(&buffer)[usize::from(y)];
        assert!(row.chars().take(7).all(|c| c == ' '), "{row}");
        for x in 7..10 {
            assert_eq!(buffer[(x, y)].fg, ratatui::style::Color::DarkGray, "{x}, {y}");
        }
        let before: String = seen[usize::from(y)].chars().skip(10).take(3).collect();
        let after: String = row.chars().skip(7).take(3).collect();
        assert_eq!(before, after, "the same tiles, three columns to the left");
    }
}

/// Where the second player is drawn on the first one's screen.
fn drawn_at(caves: &Caves) -> (u16, u16) {
    let buffer = drawn(caves, 0, UNICODE, 80, 24);
    let sign = Glyphs::new(caves.players[0].client.mirror().content()).kind(KindId(0)).sign;
    let map = Areas::of(buffer.area).map;
    let cells =
        (map.top()..map.bottom()).flat_map(|y| (map.left()..map.right()).map(move |x| (x, y)));
    let me = (map.left() + map.width / 2, map.top() + map.height / 2);
    let mut others = cells.filter(|at| *at != me && buffer[*at].symbol().starts_with(sign));
    let found = others.next().expect("in view");
    assert_eq!(others.next(), None, "once");
    found
}

#[test]
fn another_player_walks_over_the_screen_tile_by_tile_and_each_redraw_is_asked_for() {
    let mut caves = alone("Ada");
    caves.enter("Bob", Home::Alone { seed: 7, is_kept: false });
    caves.run_for(1000);
    let way = caves_world::Direction::East;
    // One step away, so that Ada does not stand on him.
    caves.players[1].client.act(caves_world::Command::Move(way)).unwrap();
    caves.run_for(1000);
    let start = drawn_at(&caves);
    let (mut last, mut steps, mut asked) = (start, Vec::new(), None);
    for moment in 0..100 {
        if moment % 10 == 0 && moment < 30 {
            caves.players[1].client.act(caves_world::Command::Move(way)).unwrap();
        }
        caves.run_for(10);
        let now = drawn_at(&caves);
        if now != last {
            assert_eq!(now, (last.0 + 1, last.1));
            // A millisecond later it is there for sure.
            let asked = asked.expect("a redraw is asked for");
            assert!(asked <= caves.now + Duration::from_millis(1), "{asked:?}, {:?}", caves.now);
            steps.push(caves.now);
            last = now;
        }
        asked = caves.players[0].client.next_step(caves.now);
    }
    assert_eq!((steps.len(), last.0 - start.0), (3, 3));
    let gaps = steps.windows(2).map(|pair| pair[1].saturating_since(pair[0]).as_millis());
    assert!(gaps.clone().all(|gap| (90..=110).contains(&gap)), "{:?}", gaps.collect::<Vec<_>>());
    // Some creature in the dark wanders now and then; while it stands nothing has to be drawn.
    let rest = (0..100).any(|_| {
        caves.run_for(10);
        caves.players[0].client.next_step(caves.now).is_none()
    });
    assert!(rest, "a quiet screen is not drawn");
}
