//! The system's allocator, with a count of what is in use.
//!
//! ```
//! use caves_counting::Counting;
//!
//! #[global_allocator]
//! static ALLOCATOR: Counting = Counting::new();
//!
//! let before = ALLOCATOR.live();
//! let kept = std::hint::black_box(vec![0u8; 1000]);
//! assert_eq!(ALLOCATOR.live(), before + 1000);
//! drop(kept);
//! assert_eq!(ALLOCATOR.live(), before);
//! ```

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

thread_local! {
    /// Constant and without a destructor: to look at it neither allocates nor fails while a thread ends.
    static WATCHED: Cell<Option<&'static AtomicU64>> = const { Cell::new(None) };
}

/// Counts the blocks that the calling thread makes from now on into `blocks` as well, where others can see
/// them. Counts nothing unless a [`Counting`] is the global allocator.
///
/// ```
/// use caves_counting::Counting;
/// use std::sync::atomic::{AtomicU64, Ordering};
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting::new();
/// static HERE: AtomicU64 = AtomicU64::new(0);
///
/// caves_counting::watch(&HERE);
/// let block = std::hint::black_box(Box::new(7));
/// std::thread::spawn(|| std::hint::black_box(vec![0u8; 10])).join().unwrap();
/// // The box and what starting a thread takes; what the other thread made is not among it.
/// let made = HERE.load(Ordering::Relaxed);
/// assert!(made >= 1 && made < ALLOCATOR.made());
/// # drop(block);
/// ```
pub fn watch(blocks: &'static AtomicU64) {
    WATCHED.set(Some(blocks));
}

/// Hands everything on to [`System`], and counts.
///
/// The counts are of the whole process: who compares two of them lets nothing else run between.
#[derive(Debug, Default)]
pub struct Counting {
    live: AtomicUsize,
    made: AtomicU64,
}

impl Counting {
    /// Nothing counted yet.
    pub const fn new() -> Self {
        Self { live: AtomicUsize::new(0), made: AtomicU64::new(0) }
    }

    /// Bytes that were asked for and not given back.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }

    /// Blocks that were made so far; one that is made larger or smaller counts again.
    pub fn made(&self) -> u64 {
        self.made.load(Ordering::Relaxed)
    }

    fn add(&self, bytes: usize) {
        self.live.fetch_add(bytes, Ordering::Relaxed);
        self.made.fetch_add(1, Ordering::Relaxed);
        if let Some(blocks) = WATCHED.get() {
            blocks.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn remove(&self, bytes: usize) {
        self.live.fetch_sub(bytes, Ordering::Relaxed);
    }
}

// SAFETY: every method hands its arguments on to `System` unchanged and gives back what that gives;
// the counters are atomics, which neither allocate nor panic.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `GlobalAlloc::alloc`'s contract, which is the same.
        let block = unsafe { System.alloc(layout) };
        if !block.is_null() {
            self.add(layout.size());
        }
        block
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`.
        let block = unsafe { System.alloc_zeroed(layout) };
        if !block.is_null() {
            self.add(layout.size());
        }
        block
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller has `block` from this allocator with this layout, hence from `System`.
        unsafe { System.dealloc(block, layout) };
        self.remove(layout.size());
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `dealloc`, and the caller sees to the new size.
        let moved = unsafe { System.realloc(block, layout, size) };
        if !moved.is_null() {
            self.remove(layout.size());
            self.add(size);
        }
        moved
    }
}
