//! Lets the C compiler compare both sides of the contract, `csrc/bridge.h` and the Rust that mirrors it.
//!
//! The Rust sources are read, and what they declare is written down as C, behind the header: a prototype for each function
//! of the other side and each function that it calls, and for each struct and constant an assertion that the header has
//! the same. A difference, or a function that the header does not know, is an error of the C compiler which names it.
//!
//! Names follow one rule: `IsolateStats` is `surus_isolate_stats`, `RUN_BOOT` is `SURUS_RUN_BOOT`, a field is what it is.

use std::{
    env,
    fmt::Write,
    fs,
    path::{Path, PathBuf},
};

use syn::{
    Expr, Fields, FnArg, ForeignItem, Item, ItemConst, ItemStruct, Lit, ReturnType, Signature, Type,
};

/// Where the mirrors of structs and constants are; functions may be anywhere.
const MIRROR: &str = "src/ffi.rs";

/// That of `surus_cell` is another crate's.
const CELLS: &str = "../surus-schema/src/input.rs";

/// Kinds of cells that C never sees: they end with the parser.
const PARSERS_OWN: [&str; 2] = ["Text", "Many"];

/// A C file to compile.
pub(crate) fn write() -> PathBuf {
    let mut text = String::from("#include \"bridge.h\"\n\n");
    let mut files = Vec::new();
    find(Path::new("src"), &mut files);
    files.sort();
    for file in files {
        let source = fs::read_to_string(&file).expect("a source can be read");
        let parsed =
            syn::parse_file(&source).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let is_mirror = file == Path::new(MIRROR);
        let before = text.len();
        for item in parsed.items {
            match item {
                Item::Fn(function) if is_exported(&function.attrs, &function.sig) => {
                    prototype(&function.sig, &mut text);
                }
                Item::ForeignMod(module) => {
                    for function in module.items {
                        match function {
                            ForeignItem::Fn(function) if is_ours(&function.sig) => {
                                prototype(&function.sig, &mut text);
                            }
                            _ => {}
                        }
                    }
                }
                Item::Struct(item) if is_mirror => structure(&item, &mut text),
                Item::Const(item) if is_mirror => constant(&item, &mut text),
                _ => {}
            }
        }
        // Others need not be looked at again: a new function changes the header as well.
        if text.len() > before {
            println!("cargo:rerun-if-changed={}", file.display());
        }
    }
    cells(&mut text);
    let path = PathBuf::from(env::var("OUT_DIR").expect("cargo sets OUT_DIR")).join("contract.c");
    fs::write(&path, text).expect("OUT_DIR can be written");
    println!("cargo:rerun-if-changed={CELLS}");
    path
}

fn cells(text: &mut String) {
    let source = fs::read_to_string(CELLS).expect("the schema's input can be read");
    let parsed = syn::parse_file(&source).unwrap_or_else(|error| panic!("{CELLS}: {error}"));
    for item in parsed.items {
        match item {
            Item::Struct(item) if item.ident == "Cell" => structure(&item, text),
            Item::Enum(item) if item.ident == "Kind" => {
                for variant in item.variants {
                    let name = variant.ident.to_string();
                    let Some((_, value)) = variant.discriminant else {
                        panic!("{CELLS}: {name} has no number");
                    };
                    if !PARSERS_OWN.contains(&name.as_str()) {
                        assert_value(&format!("CELL_{}", name.to_uppercase()), &value, text);
                    }
                }
            }
            _ => {}
        }
    }
}

fn find(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("src can be read") {
        let path = entry.expect("src can be read").path();
        if path.is_dir() {
            find(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn is_ours(signature: &Signature) -> bool {
    signature.ident.to_string().starts_with("surus_")
}

fn is_exported(attributes: &[syn::Attribute], signature: &Signature) -> bool {
    is_ours(signature) && attributes.iter().any(|it| it.path().is_ident("no_mangle"))
}

/// The header has to know the function, and with the same types.
fn prototype(signature: &Signature, text: &mut String) {
    let name = &signature.ident;
    let arguments: Vec<String> = signature
        .inputs
        .iter()
        .map(|argument| match argument {
            FnArg::Typed(argument) => c_type(&argument.ty),
            FnArg::Receiver(_) => panic!("{name}: C knows no self"),
        })
        .collect();
    let result = match &signature.output {
        ReturnType::Default => "void".to_owned(),
        ReturnType::Type(_, result) => c_type(result),
    };
    let arguments = match arguments.is_empty() {
        true => "void".to_owned(),
        false => arguments.join(", "),
    };
    let _ = writeln!(
        text,
        "extern __typeof__({name}) {name};\n{result} {name}({arguments});"
    );
}

fn structure(item: &ItemStruct, text: &mut String) {
    let is_c = item.attrs.iter().any(|it| it.path().is_ident("repr"));
    let Fields::Named(fields) = &item.fields else {
        return;
    };
    let names: Vec<String> = fields
        .named
        .iter()
        .filter_map(|field| field.ident.as_ref().map(ToString::to_string))
        .collect();
    if !is_c || names.iter().any(|name| name.starts_with('_')) {
        return; // opaque
    }
    let ours = c_name(&item.ident.to_string());
    let _ = writeln!(text, "struct rust_{ours} {{");
    for (field, name) in fields.named.iter().zip(&names) {
        let _ = writeln!(text, "\t{};", c_declaration(&field.ty, name));
    }
    let _ = writeln!(
        text,
        "}};\n_Static_assert(sizeof(struct rust_{ours}) == sizeof({ours}), \"the size of {ours}\");"
    );
    for name in names {
        let _ = writeln!(
            text,
            "_Static_assert(offsetof(struct rust_{ours}, {name}) == offsetof({ours}, {name}) && \
             __builtin_types_compatible_p(__typeof__(((struct rust_{ours} *)0)->{name}), \
             __typeof__((({ours} *)0)->{name})), \"{ours}.{name}\");"
        );
    }
}

fn constant(item: &ItemConst, text: &mut String) {
    assert_value(&item.ident.to_string(), &item.expr, text);
}

fn assert_value(name: &str, value: &Expr, text: &mut String) {
    let Expr::Lit(literal) = value else { return };
    if let Lit::Int(value) = &literal.lit {
        let _ = writeln!(
            text,
            "_Static_assert(SURUS_{name} == {value}, \"SURUS_{name}\");"
        );
    }
}

/// `IsolateStats` → `surus_isolate_stats`.
fn c_name(name: &str) -> String {
    let mut to = String::from("surus");
    for character in name.chars() {
        if character.is_ascii_uppercase() {
            to.push('_');
        }
        to.push(character.to_ascii_lowercase());
    }
    to
}

fn c_type(from: &Type) -> String {
    match from {
        Type::Ptr(pointer) => {
            let qualifier = match pointer.const_token {
                Some(_) => " const",
                None => "",
            };
            format!("{}{qualifier} *", c_type(&pointer.elem))
        }
        Type::Path(path) => {
            let name = path.path.segments.last().expect("a name").ident.to_string();
            let plain = match name.as_str() {
                "bool" => "bool",
                "c_char" => "char",
                "c_uchar" => "unsigned char",
                "c_int" => "int",
                "c_uint" => "unsigned",
                "c_ulong" => "unsigned long",
                "c_void" => "void",
                "f64" => "double",
                "i64" => "int64_t",
                "Kind" | "u8" => "uint8_t", // repr(u8)
                "u16" => "uint16_t",
                "u32" => "uint32_t",
                "u64" => "uint64_t",
                "usize" => "size_t",
                _ => return c_name(&name),
            };
            plain.to_owned()
        }
        other => panic!("a type that C does not have: {}", other_name(other)),
    }
}

fn other_name(of: &Type) -> &'static str {
    match of {
        Type::Array(_) => "an array that is not a field",
        Type::Reference(_) => "a reference",
        Type::Tuple(_) => "a tuple",
        _ => "neither a name nor a pointer",
    }
}

/// Of a field: `uint8_t name[3][16]`.
fn c_declaration(from: &Type, name: &str) -> String {
    match from {
        Type::Array(array) => {
            let Expr::Lit(length) = &array.len else {
                panic!("{name}: its length is no number");
            };
            let Lit::Int(length) = &length.lit else {
                panic!("{name}: its length is no number");
            };
            c_declaration(&array.elem, &format!("{name}[{length}]"))
        }
        other => format!("{} {name}", c_type(other)),
    }
}
