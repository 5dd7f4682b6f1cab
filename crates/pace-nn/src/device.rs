//! Where the numbers live and which instructions work on them.

/// The kind of memory and processor a network runs on. Layers are descriptions of where their weights lie; a pass over
/// them is a function of a device, so that another device can stand beside this one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Device {
    /// The processor this program runs on.
    Cpu,
}

impl Device {
    /// A buffer of zeros on this device.
    pub fn zeros(self, n: usize) -> Vec<f32> {
        match self {
            Device::Cpu => vec![0.0; n],
        }
    }
}

/// The widest vector instructions this processor has; records name it, since rounding may differ between them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimdPath {
    /// 512-bit vectors.
    Avx512,
    /// 256-bit vectors with fused multiply-add.
    Avx2,
    /// Whatever every processor of the kind has.
    Portable,
}

impl SimdPath {
    /// What this processor has.
    #[inline]
    pub fn detect() -> SimdPath {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
                return SimdPath::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return SimdPath::Avx2;
            }
        }
        SimdPath::Portable
    }

    /// The name in records.
    pub fn name(self) -> &'static str {
        match self {
            SimdPath::Avx512 => "avx512",
            SimdPath::Avx2 => "avx2",
            SimdPath::Portable => "portable",
        }
    }
}
