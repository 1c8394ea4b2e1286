//! Panics of the database, caught at its border.
//!
//! redb reports most damage as an error, but not all: a file whose pages contradict each other can still
//! end in a failed assertion. Whatever touches a file goes through [`contain`].

use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::Once;

thread_local! {
    /// `Some` while this thread is inside [`contain`]: what the last panic said.
    static SAID: RefCell<Option<String>> = const { RefCell::new(None) };
}

static HOOK: Once = Once::new();

/// Runs `work`. A panic becomes an error that says what and where, and nothing is printed.
pub(super) fn contain<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    HOOK.call_once(install);
    let outer = SAID.replace(Some(String::new()));
    // What `work` touches is thrown away after a panic: a file is closed, a transaction never commits.
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    let said = SAID.replace(outer).unwrap_or_default();
    outcome.map_err(|_| said)
}

/// Panics elsewhere are told as before.
fn install() {
    let before = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        let contained = SAID.with_borrow_mut(|said| {
            let contained = said.is_some();
            if contained {
                *said = Some(describe(info));
            }
            contained
        });
        if !contained {
            before(info);
        }
    }));
}

fn describe(info: &PanicHookInfo<'_>) -> String {
    let what = info.payload_as_str().unwrap_or("a panic");
    match info.location() {
        // The file alone: the rest is a path of the machine that built it.
        Some(at) => {
            let file = at.file().rsplit(['/', '\\']).next().unwrap_or_default();
            format!("{what} ({file}:{})", at.line())
        }
        None => what.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_an_error_that_says_where() {
        let failed = contain(|| -> u8 { panic!("page {} is gone", 7) });
        let said = failed.unwrap_err();
        assert!(said.starts_with("page 7 is gone (contain.rs:"), "{said}");
        assert_eq!(contain(|| 3), Ok(3));
    }

    #[test]
    fn one_inside_another_leaves_the_outer_in_force() {
        let outer: Result<(), String> = contain(|| {
            let inner = contain(|| panic!("inner")).unwrap_err();
            assert!(inner.starts_with("inner"), "{inner}");
            panic!("outer")
        });
        assert!(outer.unwrap_err().starts_with("outer"));
    }
}
