//! The kernels as a static library of plain C++, with a function that finds one by its name.

use std::fs;
use std::path::{Path, PathBuf};

/// Compiles and links the sources and a table of what they name by `HOST_ENTRY`.
pub(crate) fn compile(sources: &[PathBuf]) -> Result<(), String> {
    let folder = std::env::var("OUT_DIR").map_err(|error| format!("OUT_DIR: {error}"))?;
    let table = Path::new(&folder).join("host_table.cpp");
    let entries = entries(sources)?;
    fs::write(&table, table_source(&entries)).map_err(|error| format!("{}: {error}", table.display()))?;
    cc::Build::new()
        .cpp(true)
        // Nothing of the C++ library's is linked, so a program needs none at run time.
        .cpp_link_stdlib(None)
        .std("c++17")
        .flag("-x")
        .flag("c++")
        .flag("-fno-exceptions")
        .flag("-fno-rtti")
        // A product and a sum are rounded apart, whatever the processor: what tests see is the same everywhere.
        .flag("-ffp-contract=off")
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .flag("-Wno-unused-function")
        .include("include")
        .files(sources)
        .file(&table)
        .try_compile("nearcast_kernels")
        .map_err(|error| format!("the kernels as plain C++: {error}"))
}

/// The names in lines `HOST_ENTRY(NAME)`.
fn entries(sources: &[PathBuf]) -> Result<Vec<String>, String> {
    let mut entries = Vec::new();
    for source in sources {
        let text = fs::read_to_string(source).map_err(|error| format!("{}: {error}", source.display()))?;
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("HOST_ENTRY(").and_then(|rest| rest.strip_suffix(")")) {
                entries.push(name.to_owned());
            }
        }
    }
    Ok(entries)
}

fn table_source(entries: &[String]) -> String {
    let mut source = String::from("#include <stdint.h>\n#include <string.h>\n");
    for name in entries {
        source.push_str(&format!("extern \"C\" void host_{name}(uint32_t, uint32_t, void**);\n"));
    }
    source.push_str("using Entry = void (*)(uint32_t, uint32_t, void**);\n");
    source.push_str("extern \"C\" Entry nearcast_host_kernel(const char* name) {\n");
    for name in entries {
        source.push_str(&format!("    if (strcmp(name, \"{name}\") == 0) return host_{name};\n"));
    }
    source.push_str("    return nullptr;\n}\n");
    source
}
