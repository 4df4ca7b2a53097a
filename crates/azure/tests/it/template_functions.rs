//! What expressions of templates come to.

use serde_json::{Value, json};

use crate::templates::deploy_template;

/// What an expression comes to in an output, or what is said against it.
fn evaluate(expression: &str) -> Result<Value, String> {
    let text = |message: &forewarn_azure::ArmError| {
        message.details.first().map_or_else(|| message.message.clone(), |inner| inner.message.clone())
    };
    let template = json!({
        "contentVersion": "1.2.3.4",
        "variables": {
            "object": { "a": { "B": [10, 20] }, "[concat('k', 'ey')]": true },
            "list": ["x", "y"],
            "copy": [{ "name": "squares", "count": 3, "input": "[mul(copyIndex('squares'), copyIndex('squares'))]" }],
        },
        "resources": [],
        "outputs": { "out": { "type": "array", "value": [expression] } },
    });
    let mut expanded = deploy_template(&template).map_err(|error| text(&error))?;
    let mut outputs = expanded.outputs(&|_| None).map_err(|error| text(&error))?;
    Ok(outputs["out"]["value"][0].take())
}

#[test]
fn functions_give_what_azure_gives() {
    for (expression, expected) in [
        ("[concat('a', 1, 'b')]", json!("a1b")),
        ("[concat(createArray(1), variables('list'))]", json!([1, "x", "y"])),
        ("[format('{0}-{1}-{0} {{}} {1:D3}', 'a', 7)]", json!("a-7-a {} 007")),
        ("[toLower('ÄB')]", json!("äb")),
        ("[TOUPPER('ab')]", json!("AB")),
        ("[string(createObject('a', 1))]", json!(r#"{"a":1}"#)),
        ("[string(12)]", json!("12")),
        ("[int('12')]", json!(12)),
        ("[bool('True')]", json!(true)),
        ("[bool(0)]", json!(false)),
        ("[length('äb')]", json!(2)),
        ("[length(variables('list'))]", json!(2)),
        ("[if(equals(1, 1), 'yes', div(1, 0))]", json!("yes")),
        ("[and(true(), not(false()))]", json!(true)),
        ("[or(false(), false())]", json!(false)),
        ("[empty('')]", json!(true)),
        ("[empty(variables('object'))]", json!(false)),
        ("[contains('abc', 'b')]", json!(true)),
        ("[contains(variables('list'), 'z')]", json!(false)),
        ("[contains(variables('object'), 'A')]", json!(true)),
        ("[coalesce(null(), json('null'), 'c')]", json!("c")),
        ("[json('{\"a\": [1]}').a[0]]", json!(1)),
        ("[split('a,b;c', createArray(',', ';'))]", json!(["a", "b", "c"])),
        ("[split('a,b', ',')[1]]", json!("b")),
        ("[replace('a-b-c', '-', '')]", json!("abc")),
        ("[substring('abcd', 1, 2)]", json!("bc")),
        ("[substring('abcd', 4)]", json!("")),
        ("[add(1, mul(2, 3))]", json!(7)),
        ("[sub(1, 2)]", json!(-1)),
        ("[div(7, 2)]", json!(3)),
        ("[mod(7, 2)]", json!(1)),
        ("[min(3, 1, 2)]", json!(1)),
        ("[max(createArray(3, 1))]", json!(3)),
        ("[range(2, 3)]", json!([2, 3, 4])),
        (
            "[union(createObject('a', createObject('x', 1)), createObject('a', createObject('y', 2)))]",
            json!({ "a": { "x": 1, "y": 2 } }),
        ),
        ("[union(createArray(1, 2), createArray(2, 3))]", json!([1, 2, 3])),
        ("[join(variables('list'), '+')]", json!("x+y")),
        ("[first(variables('list'))]", json!("x")),
        ("[last('abc')]", json!("c")),
        ("[take('abc', 2)]", json!("ab")),
        ("[skip(variables('list'), 1)]", json!(["y"])),
        ("[padLeft(7, 3, '0')]", json!("007")),
        ("[trim(' a ')]", json!("a")),
        ("[startsWith('Abc', 'aB')]", json!(true)),
        ("[endsWith('abc', 'x')]", json!(false)),
        ("[indexOf('äbc', 'C')]", json!(2)),
        ("[greater(2, 1)]", json!(true)),
        ("[lessOrEquals('a', 'b')]", json!(true)),
        ("[base64('hello')]", json!("aGVsbG8=")),
        ("[base64('abc')]", json!("YWJj")),
        ("[array('a')]", json!(["a"])),
        ("[uniqueString('hello', 'world')]", json!("a7wkljktk6wne")),
        ("[guid('a', 'b')]", json!("2d796349-8c7e-55ec-9624-54ece82ed031")),
    ] {
        assert_eq!(evaluate(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn properties_and_elements_are_found_in_any_spelling() {
    for (expression, expected) in [
        ("[variables('object').A.b[1]]", json!(20)),
        ("[variables('OBJECT')['a']['B'][sub(1, 1)]]", json!(10)),
        ("[variables('object').key]", json!(true)),
        ("[variables('squares')]", json!([0, 1, 4])),
        ("text", json!("text")),
        ("[[concat('a')]", json!("[concat('a')]")),
        ("[ concat( 'it''s' ) ]", json!("it's")),
    ] {
        assert_eq!(evaluate(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn the_deployment_knows_where_it_goes() {
    let group = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/g";
    for (expression, expected) in [
        ("[resourceGroup().id]", json!(group)),
        ("[resourceGroup().location]", json!("eastus")),
        ("[subscription().subscriptionId]", json!("11111111-1111-1111-1111-111111111111")),
        ("[deployment().name]", json!("d")),
        ("[deployment().properties.template.contentVersion]", json!("1.2.3.4")),
        ("[providers('Microsoft.Compute', 'virtualMachines').apiVersions[0]]", json!("2026-04-01")),
        ("[resourceId('A.B/c', 'x')]", json!(format!("{group}/providers/A.B/c/x"))),
        ("[resourceId('A.B/c/d', 'x', 'y')]", json!(format!("{group}/providers/A.B/c/x/d/y"))),
        ("[resourceId('A.B/c/d', 'x/y')]", json!(format!("{group}/providers/A.B/c/x/d/y"))),
        ("[resourceId('h', 'A.B/c', 'x')]", json!(group.replace("/g", "/h") + "/providers/A.B/c/x")),
        (
            "[resourceId('s', 'h', 'A.B/c', 'x')]",
            json!("/subscriptions/s/resourceGroups/h/providers/A.B/c/x"),
        ),
        ("[subscriptionResourceId('s', 'A.B/c', 'x')]", json!("/subscriptions/s/providers/A.B/c/x")),
    ] {
        assert_eq!(evaluate(expression), Ok(expected), "{expression}");
    }
}

#[test]
fn what_is_wrong_is_said() {
    for (expression, said) in [
        ("[listKeys('x')]", "the template function 'listKeys' is not valid"),
        ("[nonsense()]", "the template function 'nonsense'"),
        ("[concat()]", "'concat' expects at least 1 arguments and has 0"),
        ("[add(1)]", "'add' expects 2 arguments and has 1"),
        ("[substring('a', 1, 2, 3)]", "expects 2 to 3 arguments"),
        ("[add('1', 1)]", "'add' expects a whole number as its argument 1"),
        ("[toLower(1)]", "a text as its argument 1"),
        ("[not(1)]", "true or false as its argument 1"),
        ("[if(1, 2, 3)]", "'if' is to be true or false"),
        ("[if(true(), 2)]", "three arguments"),
        ("[div(1, 0)]", "no result that is a whole number"),
        ("[add(9223372036854775807, 1)]", "no result"),
        ("[substring('abc', 2, 2)]", "exceeds the end"),
        ("[replace('a', '', 'b')]", "not empty"),
        ("[format('{1}', 'a')]", "a placeholder without an argument"),
        ("[format('{0', 'a')]", "an unmatched brace"),
        ("[format('{0:X}', 1)]", "supports only the format D"),
        ("[json('{')]", "expects JSON"),
        ("[int('1.5')]", "read as a whole number"),
        ("[bool('yes')]", "read as true or false"),
        ("[variables('nothing')]", "the template variable 'nothing' is not found"),
        ("[parameters('nothing')]", "the template parameter 'nothing' is not found"),
        ("[variables('object').nothing]", "property 'nothing' does not exist"),
        ("[variables('list')[2]]", "property '2' does not exist"),
        ("[variables('list').x]", "property 'x' does not exist"),
        ("[copyIndex()]", "not in a loop"),
        ("[resourceId('A.B/c')]", "at least 2 arguments"),
        ("[resourceId('A.B/c/d', 'x')]", "as many names"),
        ("[resourceId('a', 'b', 'c', 'A.B/c', 'x')]", "expects a type"),
        ("[min(createArray())]", "at least one number"),
        ("[concat('a'", "[concat('a'"),
        ("[concat('a']", "is not valid"),
        ("[reference('nobody')]", "no resource of that name is in the template"),
        ("[range(0, 100000)]", "at most 10000"),
    ] {
        match evaluate(expression) {
            Err(message) => assert!(message.contains(said), "{expression}: {message}"),
            // What is not closed is a text.
            Ok(value) => assert_eq!(value, json!(said), "{expression}"),
        }
    }
}

#[test]
fn lists_are_made_by_loops() {
    let disks = json!({ "name": "disks", "count": 2, "input": { "lun": "[copyIndex('disks', 1)]" } });
    let template = json!({
        "resources": [{
            "type": "A.B/c",
            "apiVersion": "2024-07-01",
            "name": "[concat('n', copyIndex())]",
            "copy": { "name": "many", "count": 2 },
            "properties": { "copy": [disks], "of": "[copyIndex()]" },
        }],
        "outputs": { "all": { "type": "array", "copy": { "count": 2, "input": "[copyIndex()]" } } },
    });
    let mut expanded = deploy_template(&template).unwrap();
    let expected = json!({ "properties": { "disks": [{ "lun": 1 }, { "lun": 2 }], "of": 1 } });
    assert_eq!(expanded.body(1, &|_| None).unwrap(), expected);
    let outputs = expanded.outputs(&|_| None).unwrap();
    assert_eq!(outputs, json!({ "all": { "type": "Array", "value": [0, 1] } }));
}

#[test]
fn outputs_are_called_as_azure_calls_them() {
    for (name, shown) in [
        ("VMSS", "vmss"),
        ("PublicIP", "publicIP"),
        ("URLOfIt", "urlOfIt"),
        ("already", "already"),
        ("X", "x"),
        ("ID0", "iD0"),
        ("_A", "_A"),
    ] {
        let template = json!({ "resources": [], "outputs": { name: { "type": "int", "value": 1 } } });
        let outputs = deploy_template(&template).unwrap().outputs(&|_| None).unwrap();
        assert_eq!(outputs, json!({ shown: { "type": "Int", "value": 1 } }));
    }
}
