//! A store as lines of JSON: to move a world between versions and backends, and to look at it or put it
//! right with a text editor. Tiles and kinds are named, so that numbers may differ on the other side.
//!
//! ```text
//! {"format":"forgotten-caves-world","version":1,"seed":7,"generator":1,"tick":90,"last_id":12}
//! {"content":{"tiles":[[0,"core:unknown"],…],"kinds":[[0,"core:player"],…]}}
//! {"player":{"name":"Ada","x":-3,"y":5,"hp":20,"elo":1000,"inventory":[["core:torch",3]]}}
//! {"ban":{"target":"192.0.2.0/24","is_name":false,"reason":"floods","until_unix_s":null,"set_unix_s":1764460800}}
//! {"chunk":{"x":-1,"y":0,"generator":1,"edited":{"version":2,"palette":[["#","core:rock"],[".","core:floor"]],
//!   "rows":["##..…",…]},"residents":[…],"things":[{"id":9,"kind":"core:sign","x":-3,"y":5,"sign":"Beware."}]}}
//! {"end":{}}
//! ```
//!
//! (A line is never broken as the chunk's is here.) The numbers in the second line say what the names
//! meant where it was written; nothing after it uses them. Without the last line a file is not whole.
//!
//! ```
//! use caves_store::json::{Importer, export};
//! use caves_store::{Backend, Batch, Memory, Table, ban, BanRecord};
//! use caves_world::Content;
//!
//! let text = r#"{"format":"forgotten-caves-world","version":1,"seed":7,"generator":1,"tick":90,"last_id":12}
//! {"content":{"tiles":[],"kinds":[]}}
//! {"ban":{"target":"Mallory","is_name":true,"reason":"","until_unix_s":null,"set_unix_s":5}}
//! {"end":{}}"#;
//! let content = Content::core();
//! let mut importer = Importer::new(&content, |name| name.to_lowercase().into_bytes());
//! let mut batch = Batch::default();
//! for line in text.lines() {
//!     importer.line(line, &mut batch).unwrap();
//! }
//! importer.finish(&mut batch).unwrap();
//! let mut store = Memory::default();
//! store.commit(&batch).unwrap();
//! assert!(store.get(Table::Bans, b"nMallory").unwrap().is_some());
//!
//! let mut lines = Vec::new();
//! export(&store, &mut |line| { lines.push(line.to_owned()); true }).unwrap();
//! assert_eq!(lines[2], text.lines().nth(2).unwrap());
//! ```

mod export;
mod import;
mod lines;
#[cfg(test)]
mod tests;

pub use export::{ExportError, Exported, export};
pub use import::{ImportError, ImportFault, Importer};

/// What the first line says the file is.
pub const FORMAT_NAME: &str = "forgotten-caves-world";

/// The version of the lines that this program writes and reads.
pub const VERSION: u32 = 1;
