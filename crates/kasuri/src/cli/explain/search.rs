//! Looks keys up in the JSON Schema of the experiment file.

use serde_json::Value;

/// A meaning of a key, with the forms of the section that have it (`topology = mesh`); none if all have it.
#[derive(Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) choices: Vec<String>,
    pub(super) schema: Value,
    /// The section cannot do without the key.
    pub(super) is_required: bool,
}

/// A value that selects a form of its section, such as `mesh` of `network.topology`.
#[derive(Debug, PartialEq)]
pub(super) struct Form {
    pub(super) value: String,
    /// The section with the keys of this value.
    pub(super) schema: Value,
    /// The default value of the key.
    pub(super) is_default: bool,
}

/// The entries of a schema for one key.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) meanings: Vec<Meaning>,
    pub(super) forms: Vec<Form>,
}

impl Found {
    pub(super) fn is_empty(&self) -> bool {
        self.meanings.is_empty()
    }

    /// The default value of the key, if it selects a form.
    pub(super) fn default_form(&self) -> Option<&Form> {
        self.forms.iter().find(|form| form.is_default)
    }
}

/// Keywords with further schemas of the same value.
const ALTERNATIVES: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Looks a path up through all alternatives of a schema.
pub(super) fn find(root: &Value, path: &[&str]) -> Found {
    find_from(root, root, path)
}

/// Looks a path up that begins at a part of the schema.
pub(super) fn find_from(root: &Value, part: &Value, path: &[&str]) -> Found {
    let mut search = Search { root, found: Found { meanings: Vec::new(), forms: Vec::new() } };
    search.follow(part, path, Branch::default());
    search.found
}

/// The context of a part of the schema, collected on the path to it.
#[derive(Clone, Copy, Default)]
struct Branch<'a> {
    choice: Option<&'a str>,
    is_required: bool,
}

/// Follows a path through all alternatives of a schema.
struct Search<'a> {
    root: &'a Value,
    found: Found,
}

impl<'a> Search<'a> {
    fn follow(&mut self, node: &'a Value, path: &[&str], branch: Branch<'_>) {
        let node = self.resolved(node, path.is_empty());
        let Some((first, rest)) = path.split_first() else { return self.add(node, branch) };
        let own = choice_of(node, first);
        let branch = Branch { choice: own.as_deref().or(branch.choice), ..branch };
        if let Some(property) = node["properties"].get(*first) {
            let is_required = is_required(node, first);
            if rest.is_empty() && property.get("const").is_some() {
                self.add_form(node, property, is_required);
            }
            self.follow(property, rest, Branch { is_required, ..branch });
        }
        if let items @ Value::Object(_) = &node["items"] {
            // `traffic.class.0.load` and `traffic.class.load` mean the same.
            let path = if first.parse::<usize>().is_ok() { rest } else { path };
            self.follow(items, path, branch);
        }
        for alternatives in ALTERNATIVES {
            node[alternatives].as_array().into_iter().flatten().for_each(|other| self.follow(other, path, branch));
        }
        ["then", "else"].into_iter().filter_map(|name| node.get(name)).for_each(|other| self.follow(other, path, branch));
    }

    /// The target of a reference. The description of a reference takes precedence over that of its target.
    fn resolved(&self, node: &'a Value, is_last: bool) -> &'a Value {
        match target(self.root, node) {
            Some(target) if !(is_last && node.get("description").is_some()) => target,
            _ => node,
        }
    }

    fn add_form(&mut self, section: &Value, property: &Value, is_required: bool) {
        let value = property["const"].as_str().unwrap_or_default().to_owned();
        if !self.found.forms.iter().any(|known| known.value == value) {
            self.found.forms.push(Form { value, schema: section.clone(), is_default: !is_required });
        }
    }

    fn add(&mut self, node: &Value, branch: Branch<'_>) {
        let mut schema = node.clone();
        if let (Some(Value::Object(target)), Value::Object(columns)) = (target(self.root, node), &mut schema) {
            for (key, value) in target {
                columns.entry(key.clone()).or_insert_with(|| value.clone());
            }
        }
        // The values that select a form are listed together; their key means the same in all forms.
        let selects = schema.as_object_mut().and_then(|schema| schema.remove("const")).is_some();
        let same = |meaning: &&mut Meaning| meaning.schema == schema || meaning.schema["description"] == schema["description"] && selects;
        let choice = branch.choice.filter(|_| !selects);
        let known = self.found.meanings.iter_mut().find(same);
        match (known, choice) {
            (Some(meaning), Some(choice)) if !meaning.choices.iter().any(|known| known == choice) => {
                meaning.choices.push(choice.to_owned());
            }
            (Some(_), _) => {}
            (None, choice) => {
                let choices = choice.map(str::to_owned).into_iter().collect();
                self.found.meanings.push(Meaning { choices, schema, is_required: branch.is_required });
            }
        }
    }
}

fn is_required(node: &Value, key: &str) -> bool {
    node["required"].as_array().is_some_and(|keys| keys.iter().any(|known| known == key))
}

/// The target of a schema that is a reference.
fn target<'a>(root: &'a Value, schema: &Value) -> Option<&'a Value> {
    root.pointer(schema["$ref"].as_str()?.trim_start_matches('#'))
}

/// The choice that selects this alternative of a section: `topology = mesh`, or its title, `endpoint.model = dsm`.
fn choice_of(node: &Value, key: &str) -> Option<String> {
    if let Some(title) = node["title"].as_str().filter(|title| title.contains(" = ")) {
        return Some(title.to_owned());
    }
    let properties = node["properties"].as_object()?;
    properties.iter().filter(|(name, _)| *name != key).find_map(|(name, value)| Some(format!("{name} = {}", value["const"].as_str()?)))
}

/// The values that a schema names, each with its description.
pub(super) fn named_values(root: &Value, schema: &Value) -> Vec<(String, String)> {
    if let Some(target) = target(root, schema) {
        return named_values(root, target);
    }
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(name) = schema["const"].as_str() {
        return vec![(name.to_owned(), text(&schema["description"]).unwrap_or_default())];
    }
    let names = schema["enum"].as_array().into_iter().flatten().filter_map(text).map(|name| (name, String::new()));
    let others = ["anyOf", "oneOf"].into_iter().filter_map(|key| schema[key].as_array()).flatten();
    names.chain(others.flat_map(|other| named_values(root, other))).collect()
}

/// The values that may be given, in words. References are to `root`.
pub(super) fn values(root: &Value, schema: &Value) -> String {
    if let Some(target) = target(root, schema) {
        return values(root, target);
    }
    if let Some(names) = schema["enum"].as_array() {
        return names.iter().filter(|name| !name.is_null()).map(ToString::to_string).collect::<Vec<_>>().join(", ");
    }
    if let Some(name) = schema.get("const") {
        return name.to_string();
    }
    for alternatives in ["anyOf", "oneOf"] {
        if let Some(others) = schema[alternatives].as_array() {
            let mut words: Vec<String> = others.iter().map(|other| values(root, other)).filter(|words| !words.is_empty()).collect();
            words.dedup();
            return words.join(", or ");
        }
    }
    let kind = |name: &str| match name {
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "string" => "a text",
        "array" => "a list",
        "object" => "a table",
        _ => "",
    };
    let names: Vec<&str> = match &schema["type"] {
        Value::String(name) => vec![kind(name)],
        Value::Array(names) => names.iter().filter_map(Value::as_str).map(kind).collect(),
        _ => Vec::new(),
    };
    names.into_iter().filter(|name| !name.is_empty()).collect::<Vec<_>>().join(" or ")
}

/// The names of the keys of a section or table, each once.
pub(super) fn names_within(root: &Value, path: &[&str]) -> Vec<String> {
    let mut names = Vec::new();
    find(root, path).meanings.iter().for_each(|meaning| property_names(root, &meaning.schema, &mut names, 0));
    names
}

/// The names of the properties of a schema and of its alternatives.
fn property_names(root: &Value, node: &Value, names: &mut Vec<String>, depth: u32) {
    if depth > 8 {
        return;
    }
    for node in [Some(node), target(root, node)].into_iter().flatten() {
        for name in node["properties"].as_object().into_iter().flat_map(|properties| properties.keys()) {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        for alternatives in ALTERNATIVES {
            node[alternatives].as_array().into_iter().flatten().for_each(|other| property_names(root, other, names, depth + 1));
        }
        ["then", "else", "items"]
            .into_iter()
            .filter_map(|name| node.get(name))
            .for_each(|other| property_names(root, other, names, depth + 1));
    }
}

/// All keys of the file under their dotted names.
pub(super) fn all_keys(root: &Value) -> Vec<String> {
    let mut keys = Vec::new();
    let mut open: Vec<Vec<String>> = vec![Vec::new()];
    while let Some(path) = open.pop() {
        let parts: Vec<&str> = path.iter().map(String::as_str).collect();
        for name in names_within(root, &parts) {
            let inner: Vec<String> = path.iter().cloned().chain([name]).collect();
            keys.push(inner.join("."));
            if inner.len() < MAX_DEPTH {
                open.push(inner);
            }
        }
    }
    keys
}

/// Deeper tables do not occur: `user.workload.script.steps.action` has five parts.
const MAX_DEPTH: usize = 5;
