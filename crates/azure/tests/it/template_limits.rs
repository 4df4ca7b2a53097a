//! Templates of people who mean harm, and of nobody at all: neither hangs, nor fills the memory, nor panics.

use std::fmt::Write;

use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::templates::{deploy, deploy_template};

fn refused(template: &Value) -> String {
    let error = match deploy_template(template) {
        Ok(mut expanded) => expanded.outputs(&|_| None).expect_err("too much was let pass"),
        Err(error) => error,
    };
    error.body().to_string()
}

/// Variables v0, v1, … of which each is made of the one before.
fn chain(first: Value, step: &str, count: usize) -> Value {
    let mut variables = Map::new();
    variables.insert("v0".to_owned(), first);
    for place in 1..count {
        let before = format!("variables('v{}')", place - 1);
        variables.insert(format!("v{place}"), format!("[{}]", step.replace('%', &before)).into());
    }
    variables.into()
}

/// promise: Z4
#[test]
fn what_doubles_itself_is_stopped() {
    for (first, step) in [
        (json!("xxxxxxxx"), "concat(%, %)"),
        (json!(["x"]), "concat(%, %)"),
        (json!("{0}{0}"), "format(%, %)"),
        (json!("xx"), "replace(%, 'x', %)"),
        (json!(["x"]), "createArray(%, %)"),
        (json!({}), "createObject('a', %, 'b', %)"),
    ] {
        let template = json!({ "variables": chain(first, step, 60), "resources": [] });
        let message = refused(&template);
        let known = ["too much effort", "at most 262144 bytes", "deep"];
        assert!(known.iter().any(|known| message.contains(known)), "{step}: {message}");
    }
}

/// promise: Z4
#[test]
fn what_nests_itself_is_stopped() {
    for step in ["createArray(%)", "createObject('a', %)", "%"] {
        let variables = chain(json!([]), step, 250);
        let message = refused(&json!({ "variables": variables, "resources": [] }));
        assert!(message.contains("deep"), "{step}: {message}");
    }
}

/// promise: Z4
#[test]
fn loops_in_loops_are_stopped() {
    let innermost = json!("[concat(copyIndex('a'), copyIndex('b'), copyIndex('c'))]");
    let list = |name: &str, input: Value| json!({ "copy": [{ "name": name, "count": 800, "input": input }] });
    let value = list("a", list("b", list("c", innermost)));
    let outputs = json!({ "out": { "type": "object", "value": value } });
    assert!(refused(&json!({ "resources": [], "outputs": outputs })).contains("too much effort"));
}

/// Whoever evaluates outputs looks at one resource after the other, and begins anew for each.
/// promise: Z4
#[test]
fn outputs_that_are_asked_for_again_and_again_are_stopped() {
    let value = json!(
        "[concat(string(range(0, 9999)), reference('/subscriptions/s/resourceGroups/g/providers/A.B/c/d', '2024-07-01'))]"
    );
    let outputs = json!({ "out": { "type": "string", "value": value } });
    let mut expanded = deploy_template(&json!({ "resources": [], "outputs": outputs })).unwrap();
    let mut ask = || expanded.outputs(&|_| None).unwrap_err().body().to_string();
    assert!(!ask().contains("too much effort"));
    assert!((0..1_000).any(|_| ask().contains("too much effort")));
}

/// promise: Z4
#[test]
fn everything_is_counted() {
    let resource = |name: &str| json!({ "type": "A.B/c", "apiVersion": "2024-07-01", "name": name });
    let looped = |name: &str, count: i64| {
        let mut resource = resource(&format!("[concat('{name}', copyIndex())]"));
        resource["copy"] = json!({ "name": name, "count": count });
        resource
    };
    assert_eq!(deploy_template(&json!({ "resources": [looped("a", 800)] })).unwrap().resources.len(), 800);
    for (resources, said) in [
        (json!([looped("a", 801)]), "0 to 800"),
        (json!([looped("a", -1)]), "0 to 800"),
        (json!([looped("a", 800), resource("b")]), "at most 800 resources"),
    ] {
        assert!(refused(&json!({ "resources": resources })).contains(said), "{said}");
    }
    let named = |count: usize, value: &Value| -> Value {
        (0..count).map(|place| (format!("n{place}"), value.clone())).collect::<Map<_, _>>().into()
    };
    let output = json!({ "type": "int", "value": 1 });
    for (template, said) in [
        (json!({ "variables": named(257, &json!(1)) }), "at most 256"),
        (json!({ "parameters": named(257, &json!({ "type": "int", "defaultValue": 1 })) }), "at most 256"),
        (json!({ "outputs": named(65, &output) }), "at most 64 outputs"),
    ] {
        assert!(refused(&template).contains(said), "{said}");
    }
    let mut waits = resource("a");
    waits["dependsOn"] = json!(vec!["b"; 801]);
    assert!(refused(&json!({ "resources": [waits] })).contains("at most 800 texts"));
}

#[test]
fn what_is_too_large_or_too_deep_is_refused() {
    assert!(refused(&json!({ "metadata": "x".repeat(9 << 20) })).contains("too large"));
    let deep = (0..70).fold(json!(1), |inner, _| json!([inner]));
    assert!(refused(&json!({ "metadata": deep })).contains("deep"));
    let long = format!("[concat('{}')]", "x".repeat(30_000));
    assert!(refused(&json!({ "variables": { "a": long } })).contains("at most 24576 bytes"));
}

#[test]
fn a_large_template_is_no_trouble() {
    let resources: Vec<_> = (0..800)
        .map(|place| {
            let before = if place > 0 { json!([format!("r{}", place - 1)]) } else { json!([]) };
            json!({
                "type": "A.B/c",
                "apiVersion": "2024-07-01",
                "name": format!("[concat('r', {place})]"),
                "dependsOn": before,
                "properties": { "text": "[variables('text')]", "list": "[createArray(1, 2, 3)]" },
            })
        })
        .rev()
        .collect();
    let template = json!({ "variables": { "text": "x".repeat(1_000) }, "resources": resources });
    let expanded = deploy_template(&template).unwrap();
    assert_eq!(expanded.resources[799].id.name(), "r799");
}

/// Pieces of expressions, so that what is put together is often nearly right.
const PIECES: [&str; 32] = [
    "[",
    "]",
    "(",
    ")",
    ",",
    ".",
    "'",
    "''",
    "-",
    "9",
    "concat",
    "format",
    "'{0}'",
    "variables('v')",
    "parameters('p')",
    "copyIndex()",
    "reference('a')",
    "resourceId('A.B/c', 'x')",
    "createArray",
    "createObject",
    "json",
    "split",
    "substring",
    "'a'",
    "1",
    "9223372036854775807",
    "if(",
    "true()",
    "range(0,",
    "padLeft(",
    "é",
    " ",
];

fn expression() -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(PIECES.to_vec()), 0..16).prop_map(|pieces| {
        let mut text = String::from("[");
        pieces.iter().for_each(|piece| write!(text, "{piece}").unwrap());
        text + "]"
    })
}

/// Any value, in which many texts are expressions and many members mean something in a template.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        expression().prop_map(Value::from),
        Just(json!("A.B/c")),
        Just(json!("2024-07-01")),
    ];
    let key = prop_oneof![
        prop::sample::select(
            [
                "type",
                "name",
                "apiVersion",
                "dependsOn",
                "copy",
                "condition",
                "resources",
                "properties",
                "count",
                "input",
                "value",
                "defaultValue",
                "allowedValues",
                "parameters",
                "variables",
                "outputs",
                "template",
                "existing",
                "v",
                "p",
            ]
            .to_vec()
        )
        .prop_map(str::to_owned),
        expression(),
    ];
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// A template that has at least the shape of one.
fn template() -> impl Strategy<Value = Value> {
    let resource = (expression(), value(), value(), value()).prop_map(|(name, properties, copy, depends_on)| {
        json!({
            "type": "A.B/c", "apiVersion": "2024-07-01", "name": name, "properties": properties, "copy": copy,
            "dependsOn": depends_on,
        })
    });
    (value(), expression(), prop::collection::vec(resource, 0..4), value()).prop_map(
        |(variable, default, resources, output)| {
            json!({
                "parameters": { "p": { "type": "string", "defaultValue": default } },
                "variables": { "v": variable },
                "resources": resources,
                "outputs": { "o": { "type": "object", "value": output } },
            })
        },
    )
}

/// Everything that can be asked of a deployment.
fn exercise(properties: &Value) {
    let Ok(mut expanded) = deploy(properties) else { return };
    let look = |_: &_| Some(json!({ "name": "a", "properties": { "key": [1] } }));
    for place in 0..=expanded.resources.len() {
        let _ = expanded.body(place, &look);
        let _ = expanded.body(place, &|_| None);
    }
    let _ = (expanded.outputs(&look), expanded.parameters());
}

proptest! {
    /// promise: Z4
    #[test]
    fn no_value_is_a_template_that_panics(properties in value()) {
        exercise(&properties);
        exercise(&json!({ "template": properties }));
    }

    /// promise: Z4
    #[test]
    fn no_template_panics(template in template()) {
        exercise(&json!({ "template": template }));
    }

    /// promise: Z4
    #[test]
    fn no_expression_panics(text in "\\PC{0,40}", expression in expression()) {
        for text in [format!("[{text}]"), expression] {
            let outputs = json!({ "o": { "type": "string", "value": text } });
            exercise(&json!({ "template": { "variables": { "v": [1, { "a": "b" }] }, "outputs": outputs } }));
        }
    }
}
