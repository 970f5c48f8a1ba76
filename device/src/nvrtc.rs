//! CUDA's run-time compiler, found at run time like the driver.
//!
//! It runs on the processor and knows of no device: what it makes is machine code for a compute capability.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

use libloading::Library;

use crate::source::{NotCompiled, Source};

/// Where it may be: by the loader's rules, the newest first, and in the toolkit's usual folder.
const NAMES: [&str; 5] = [
    "libnvrtc.so.13",
    "libnvrtc.so.12",
    "libnvrtc.so",
    "/usr/local/cuda/lib64/libnvrtc.so.13",
    "/usr/local/cuda/lib64/libnvrtc.so",
];

/// Headers of the C library that the compiler does not bring; its mathematical functions are built in.
const HEADERS: [(&CStr, &CStr); 2] = [
    (
        c"stdint.h",
        c"#pragma once
typedef signed char int8_t;
typedef short int16_t;
typedef int int32_t;
typedef long long int64_t;
typedef unsigned char uint8_t;
typedef unsigned short uint16_t;
typedef unsigned int uint32_t;
typedef unsigned long long uint64_t;
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX 9223372036854775807ll
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX 18446744073709551615ull
",
    ),
    (c"math.h", c"#pragma once\n"),
];

/// A program of the compiler's.
type Program = *mut c_void;

type Create = unsafe extern "C" fn(
    *mut Program,
    *const c_char,
    *const c_char,
    c_int,
    *const *const c_char,
    *const *const c_char,
) -> c_int;
type Compile = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> c_int;
type Size = unsafe extern "C" fn(Program, *mut usize) -> c_int;
type Bytes = unsafe extern "C" fn(Program, *mut c_char) -> c_int;
type Destroy = unsafe extern "C" fn(*mut Program) -> c_int;
type Words = unsafe extern "C" fn(c_int) -> *const c_char;

/// The compiler's functions.
#[derive(Debug)]
struct Compiler {
    create: Create,
    compile: Compile,
    log_size: Size,
    log: Bytes,
    cubin_size: Size,
    cubin: Bytes,
    destroy: Destroy,
    words: Words,
    /// Holds them.
    _library: Library,
}

/// Compiles a source to machine code for a compute capability.
pub(crate) fn compile(source: &Source<'_>, capability: (u32, u32)) -> Result<Vec<u8>, NotCompiled> {
    static FOUND: OnceLock<Result<Compiler, String>> = OnceLock::new();
    let found = FOUND.get_or_init(|| Compiler::find(&NAMES));
    let compiler = found.as_ref().map_err(|reason| NotCompiled::NoCompiler(reason.clone()))?;
    compiler.compile(source, capability)
}

/// A program that is destroyed when it is dropped.
struct Held<'a> {
    compiler: &'a Compiler,
    program: Program,
}

impl Compiler {
    /// The first library of these names.
    fn find(names: &[&str]) -> Result<Self, String> {
        let mut first = None;
        for name in names {
            // SAFETY: the library's initialisers are the vendor's and ask for nothing from their caller.
            match unsafe { Library::new(*name) } {
                Ok(library) => return Self::of(library).map_err(|error| error.to_string()),
                Err(error) => {
                    first.get_or_insert(error.to_string());
                }
            }
        }
        Err(first.unwrap_or_default())
    }

    fn of(library: Library) -> Result<Self, libloading::Error> {
        // SAFETY: the name is the vendor's, and the type is its signature in nvrtc.h.
        let create = *unsafe { library.get::<Create>(b"nvrtcCreateProgram\0") }?;
        // SAFETY: as before.
        let compile = *unsafe { library.get::<Compile>(b"nvrtcCompileProgram\0") }?;
        // SAFETY: as before.
        let log_size = *unsafe { library.get::<Size>(b"nvrtcGetProgramLogSize\0") }?;
        // SAFETY: as before.
        let log = *unsafe { library.get::<Bytes>(b"nvrtcGetProgramLog\0") }?;
        // SAFETY: as before.
        let cubin_size = *unsafe { library.get::<Size>(b"nvrtcGetCUBINSize\0") }?;
        // SAFETY: as before.
        let cubin = *unsafe { library.get::<Bytes>(b"nvrtcGetCUBIN\0") }?;
        // SAFETY: as before.
        let destroy = *unsafe { library.get::<Destroy>(b"nvrtcDestroyProgram\0") }?;
        // SAFETY: as before.
        let words = *unsafe { library.get::<Words>(b"nvrtcGetErrorString\0") }?;
        Ok(Self { create, compile, log_size, log, cubin_size, cubin, destroy, words, _library: library })
    }

    fn compile(&self, source: &Source<'_>, (major, minor): (u32, u32)) -> Result<Vec<u8>, NotCompiled> {
        let text =
            |text: &str| CString::new(text).map_err(|_| NotCompiled::Refused("a text has a NUL".to_owned()));
        let (name, body) = (text(source.name)?, text(source.text)?);
        let mut headers = Vec::new();
        for (name, body) in source.headers {
            headers.push((text(name)?, text(body)?));
        }
        headers.extend(HEADERS.map(|(name, body)| (name.to_owned(), body.to_owned())));
        let names: Vec<_> = headers.iter().map(|(name, _)| name.as_ptr()).collect();
        let bodies: Vec<_> = headers.iter().map(|(_, body)| body.as_ptr()).collect();
        let mut options =
            vec![c"--std=c++17".to_owned(), text(&format!("--gpu-architecture=sm_{major}{minor}"))?];
        for define in source.defines {
            options.push(text(&format!("--define-macro={define}"))?);
        }
        let options: Vec<_> = options.iter().map(|option| option.as_ptr()).collect();
        let count = |len: usize| c_int::try_from(len).expect("there are few");
        let mut program = ptr::null_mut();
        let (bodies, names, headers) = (bodies.as_ptr(), names.as_ptr(), count(headers.len()));
        // SAFETY: all texts end in a NUL and outlive the call; there are as many bodies and names as are said.
        let made =
            unsafe { (self.create)(&raw mut program, body.as_ptr(), name.as_ptr(), headers, bodies, names) };
        self.check(made)?;
        let held = Held { compiler: self, program };
        // SAFETY: the program was just made; the options are as many as are said and end in NULs.
        let compiled = unsafe { (self.compile)(program, count(options.len()), options.as_ptr()) };
        if compiled != 0 {
            let log = held.bytes(self.log_size, self.log).unwrap_or_default();
            let log = String::from_utf8_lossy(&log).trim_end_matches('\0').trim().to_owned();
            return Err(NotCompiled::Refused(format!("{}: {log}", self.say(compiled))));
        }
        held.bytes(self.cubin_size, self.cubin)
    }

    fn check(&self, answer: c_int) -> Result<(), NotCompiled> {
        if answer == 0 { Ok(()) } else { Err(NotCompiled::Refused(self.say(answer))) }
    }

    fn say(&self, answer: c_int) -> String {
        // SAFETY: the function takes any number.
        let words = unsafe { (self.words)(answer) };
        if words.is_null() {
            return format!("error {answer}");
        }
        // SAFETY: it answers a text of its own that ends in a NUL and stays.
        unsafe { CStr::from_ptr(words) }.to_string_lossy().into_owned()
    }
}

impl Held<'_> {
    /// What one function says the size of, and another writes.
    fn bytes(&self, size: Size, write: Bytes) -> Result<Vec<u8>, NotCompiled> {
        let mut bytes = 0;
        // SAFETY: the program is there, and the pointer is to a place for a size.
        self.compiler.check(unsafe { size(self.program, &raw mut bytes) })?;
        let mut written = vec![0_u8; bytes];
        // SAFETY: the program is there, and there is room for as many bytes as it said.
        self.compiler.check(unsafe { write(self.program, written.as_mut_ptr().cast()) })?;
        Ok(written)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: the program is this value's own. An error leaks it.
        unsafe { (self.compiler.destroy)(&raw mut self.program) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_is_not_there_is_told() {
        let reason = Compiler::find(&["libnearcast-has-none.so"]).expect_err("there is none");
        assert!(reason.contains("libnearcast-has-none.so"), "{reason}");
    }
}
