//! The vector instructions of this processor.

#[cfg(target_arch = "x86_64")]
use std::sync::LazyLock;

/// The instruction sets of each vector width. Detection and compilation use the same list, so that a function only uses
/// instructions that [`SimdPath::detect`] checks.
///
/// `instructions! { avx2 are_detected }` is an expression, `instructions! { avx2 compile fn … }` is the function.
#[cfg(target_arch = "x86_64")]
macro_rules! instructions {
    (avx512 $($use:tt)*) => {
        $crate::simd::instructions! {
            ["avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma"] $($use)*
        }
    };
    (avx2 $($use:tt)*) => {
        $crate::simd::instructions! { ["avx2", "fma"] $($use)* }
    };
    ([$($set:tt),*] are_detected) => {
        $(is_x86_feature_detected!($set))&&*
    };
    ([$($set:tt),*] compile $($function:tt)*) => {
        #[target_feature($(enable = $set),*)]
        $($function)*
    };
}

#[cfg(target_arch = "x86_64")]
pub(crate) use instructions;

/// The widest vector instructions of this processor. Records contain it, because rounding may depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdPath {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// The instructions that every processor of this architecture has.
    Portable,
}

impl SimdPath {
    /// Detects the vector instructions of this processor.
    #[inline]
    pub fn detect() -> SimdPath {
        #[cfg(target_arch = "x86_64")]
        {
            // Every kernel calls this function, so the result is kept.
            static DETECTED: LazyLock<SimdPath> = LazyLock::new(|| {
                if instructions! { avx512 are_detected } {
                    SimdPath::Avx512
                } else if instructions! { avx2 are_detected } {
                    SimdPath::Avx2
                } else {
                    SimdPath::Portable
                }
            });
            *DETECTED
        }
        #[cfg(not(target_arch = "x86_64"))]
        SimdPath::Portable
    }

    /// Returns the name used in records.
    pub fn name(self) -> &'static str {
        match self {
            SimdPath::Avx512 => "avx512",
            SimdPath::Avx2 => "avx2",
            SimdPath::Portable => "portable",
        }
    }
}

#[cfg(test)]
mod tests {
    /// A function that names its own instruction sets could use some that are never detected.
    #[test]
    #[cfg_attr(miri, ignore = "reads files")]
    fn instruction_sets_are_named_only_in_the_list() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src");
        let mut naming = Vec::new();
        for file in std::fs::read_dir(folder).expect("the crate's source") {
            let path = file.expect("a file").path();
            let text = std::fs::read_to_string(&path).expect("a source file");
            let code = text.split("#[cfg(test)]").next().expect("a first part");
            let n_compiled = code.matches("target_feature(").count();
            let n_detected = code.matches("is_x86_feature_detected!(").count();
            if n_compiled + n_detected > 0 {
                let name = path.file_name().expect("a name").to_string_lossy().into_owned();
                naming.push((name, n_compiled, n_detected));
            }
        }
        assert_eq!(naming, [("simd.rs".to_owned(), 1, 1)], "use `instructions!`");
    }
}
