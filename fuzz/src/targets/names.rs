//! Names and cuts.

use caves_session::caves::{NameError, check_name, fold_name};
use caves_wire::text;

/// Accepted names are clean, their folded form is stable, and cuts are the longest that fit.
pub fn names(data: &[u8]) {
    let expected = naive_check(data);
    assert_eq!(check_name(data).err(), expected);
    if let Ok(name) = check_name(data) {
        assert_eq!(name.as_bytes(), data);
        folding(name);
        assert!(text::is_clean(&fold_name(name)), "{name:?} folds to what is not shown");
    }
    let any = String::from_utf8_lossy(data);
    folding(&any);
    folding(&code_points(data));
    cutting(&any, data.first().copied().unwrap_or(0).into());
    let clean: String = text::clean(&any).collect();
    assert!(text::is_clean(&clean) && text::clean(&clean).eq(clean.chars()));
    assert_eq!(text::is_clean(&any), clean == any);
    assert!(!clean.contains(char::is_control));
}

fn naive_check(data: &[u8]) -> Option<NameError> {
    if data.is_empty() || data.len() > 32 {
        return Some(NameError::Length);
    }
    let Ok(name) = std::str::from_utf8(data) else { return Some(NameError::Utf8) };
    if name.chars().any(text::is_forbidden) {
        return Some(NameError::Invisible);
    }
    (name.trim() != name).then_some(NameError::Space)
}

/// Three bytes a character: every one is a mutation away, and none is lost to bad UTF-8.
fn code_points(data: &[u8]) -> String {
    let numbers = data.chunks_exact(3).map(|b| u32::from_le_bytes([b[0], b[1], b[2] & 0x1F, 0]));
    numbers.filter_map(char::from_u32).collect()
}

fn folding(name: &str) {
    let folded = fold_name(name);
    assert_eq!(fold_name(&folded), folded, "{name:?} is folded once and for all");
    assert_eq!(fold_name(&name.to_ascii_uppercase()), folded, "{name:?} in capitals");
    assert_eq!(fold_name(&name.to_ascii_lowercase()), folded, "{name:?} in small letters");
}

fn cutting(text: &str, limit: usize) {
    let cut = text::cut(text, limit);
    assert!(text.starts_with(cut) && cut.len() <= limit);
    let next = text[cut.len()..].chars().next();
    assert!(next.is_none_or(|next| cut.len() + next.len_utf8() > limit), "{text:?} at {limit}");
}
