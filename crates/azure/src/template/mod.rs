//! Deployment templates: expands a template and its parameters to resources, in the order of their creation, and to
//! outputs.
//!
//! ```text
//!   template, parameters ──expand──▶ Expanded ──body──▶ body of a PUT of each resource
//!                                       └────outputs──▶ outputs of the deployment
//! ```
//!
//! This module is pure: the caller reads resources through a closure. Templates are untrusted input: sizes, depths,
//! counts and the total effort are limited, also of the values that they compute. Secrets are in no message and in no
//! response.
//!
//! Not supported: nested and linked templates, user-defined functions, other scopes than the group, and functions with
//! a different result each time.

mod error;
mod evaluate;
mod functions;
mod lexer;
mod limits;
mod order;
mod parameters;
mod parser;
mod relaxed;
mod resources;
mod scope;

use serde_json::{Map, Value};

pub use self::relaxed::read;

use self::error::{TemplateError, refusal};
use self::limits::{EFFORT_MAX, OUTPUTS_MAX, TEMPLATE_WEIGHT_MAX};
use self::parameters::{Parameter, ParameterType, members, parameters, shown};
use self::resources::{Presence, ResourceBody, ResourceCollector};
use self::scope::{LoopIteration, NameKind, ResourceReader, Scope, TemplateEnvironment, ValueSource, weigh};
use super::{ApiVersion, ArmError};
use forewarn_control::resource_id::{GroupId, ResourceId};

/// Destination of a template.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    pub group: &'a GroupId,
    /// Location of the group.
    pub location: &'a str,
    /// Name of the deployment.
    pub deployment: &'a str,
}

/// Result of a template.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// Its resources, each after its dependencies.
    pub resources: Vec<Declared>,
    parameters: Vec<Parameter>,
    outputs: Value,
    environment: TemplateEnvironment,
    effort: u64,
    /// Effort that is left for the outputs.
    effort_of_outputs: u64,
}

/// A resource that a template declares.
#[derive(Clone, Debug)]
pub struct Declared {
    pub id: ResourceId,
    /// Api-version of its body.
    pub api_version: ApiVersion,
    /// Its dependencies within the template.
    pub depends_on: Vec<ResourceId>,
    body: ResourceBody,
}

/// Expands the `properties` of a deployment: `mode`, `template` and `parameters`.
///
/// # Errors
/// Fails if the template is invalid, or exceeds a limit.
///
/// ```
/// use forewarn_azure::template;
/// use forewarn_control::resource_id::GroupId;
/// use serde_json::json;
///
/// let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
/// let context = template::Context { group: &group, location: "eastus", deployment: "d" };
/// let properties = json!({ "mode": "Incremental", "template": { "resources": [{
///     "type": "Microsoft.Compute/availabilitySets",
///     "apiVersion": "2025-04-01",
///     "name": "[concat('web', '-', 'set')]",
///     "location": "[resourceGroup().location]",
/// }] } });
///
/// let mut expanded = template::expand(&properties, &context)?;
/// assert_eq!(expanded.resources[0].id.name(), "web-set");
/// assert_eq!(expanded.body(0, &|_| None)?, json!({ "location": "eastus" }));
/// # Ok::<_, forewarn_azure::ArmError>(())
/// ```
pub fn expand(properties: &Value, context: &Context<'_>) -> Result<Expanded, ArmError> {
    let template = check(properties)?;
    let (parameters, sources) = parameters(&template["parameters"], &properties["parameters"])?;
    let mut environment = TemplateEnvironment {
        group: context.group.clone(),
        location: context.location.to_owned(),
        deployment: context.deployment.to_owned(),
        content_version: template["contentVersion"].as_str().unwrap_or("1.0.0.0").to_owned(),
        names: sources.into_iter().chain(variables(&template["variables"])?).collect(),
        resources: std::collections::BTreeMap::new(),
    };
    let (names, effort) = settle(&environment, &parameters)?;
    environment.names = names;
    let (resources, effort) = declare(&mut environment, &template["resources"], effort)?;
    let outputs = template["outputs"].clone();
    Ok(Expanded { resources, parameters, outputs, environment, effort, effort_of_outputs: EFFORT_MAX })
}

/// Checks that the template can be deployed.
fn check(properties: &Value) -> Result<&Value, ArmError> {
    let mode = properties["mode"].as_str().unwrap_or("Incremental");
    if !mode.eq_ignore_ascii_case("incremental") {
        let message = "only incremental deployments are supported";
        return Err(ArmError::invalid("mode", message));
    }
    if ["templateLink", "parametersLink"].iter().any(|link| !properties[*link].is_null()) {
        return Err(refusal(
            "linked templates and parameters are not supported: send them with the deployment",
        ));
    }
    let template = &properties["template"];
    if !template.is_object() {
        return Err(refusal("the deployment has no template"));
    }
    for unknown in ["functions", "imports", "extensions"] {
        let is_there = template[unknown].as_array().is_some_and(|list| !list.is_empty())
            || template[unknown].as_object().is_some_and(|members| !members.is_empty());
        if is_there {
            return Err(refusal(format!("'{unknown}' of a template are not known here")));
        }
    }
    let weight = weigh(template).and_then(|weight| Ok(weight + weigh(&properties["parameters"])?));
    if weight.map_err(|error| error.here("template"))? > TEMPLATE_WEIGHT_MAX {
        return Err(refusal("the template is too large"));
    }
    Ok(template)
}

/// Variables, and lists that loops make of them.
fn variables(written: &Value) -> Result<Vec<parameters::NamedSource>, ArmError> {
    let mut sources = Vec::new();
    for (name, written) in members(written, "variables")? {
        if let ("copy", Value::Array(loops)) = (name.as_str(), written) {
            for entry in loops.iter().take(limits::NAMES_MAX) {
                let name = entry["name"].as_str().ok_or_else(|| refusal("a loop has no name"))?;
                sources.push(((NameKind::Variable, name.to_lowercase()), ValueSource::Loop(entry.clone())));
            }
            continue;
        }
        sources.push(((NameKind::Variable, name.to_lowercase()), ValueSource::Written(written.clone())));
    }
    Ok(sources)
}

/// Parameters and variables by name.
type NamedValues = std::collections::BTreeMap<(NameKind, String), ValueSource>;

/// Evaluates all parameters and variables. Returns them with the remaining effort.
fn settle(
    environment: &TemplateEnvironment,
    parameters: &[Parameter],
) -> Result<(NamedValues, u64), ArmError> {
    let scope = Scope::new(environment, None);
    let mut names = NamedValues::new();
    for (space, name) in environment.names.keys() {
        let value = scope.named(*space, name).map_err(|error| error.here(name))?;
        names.insert((*space, name.clone()), ValueSource::Given(value));
    }
    for parameter in parameters {
        let value = scope.named(NameKind::Parameter, &parameter.name);
        parameter.check(&value.map_err(|error| error.here(&parameter.name))?)?;
    }
    Ok((names, scope.effort()))
}

/// The resources in order, with the remaining effort.
fn declare(
    environment: &mut TemplateEnvironment,
    written: &Value,
    effort: u64,
) -> Result<(Vec<Declared>, u64), ArmError> {
    let (found, effort) = {
        let scope = Scope::new(environment, None).with_effort(effort);
        let mut collector = ResourceCollector { scope: &scope, found: Vec::new() };
        collector.all(written, None, None).map_err(|error| error.here("resources"))?;
        (collector.found, scope.effort())
    };
    let index = order::index(&found)?;
    let declared = order::order(&found, &index)?
        .into_iter()
        .filter(|(position, _)| found[*position].presence == Presence::Wanted)
        .map(|(position, before)| {
            let resource = &found[position];
            Declared {
                id: resource.id.clone(),
                api_version: resource.version,
                depends_on: before.into_iter().map(|before| found[before].id.clone()).collect(),
                body: resource.body.clone(),
            }
        })
        .collect();
    let ids =
        |positions: Vec<usize>| positions.into_iter().map(|position| found[position].id.clone()).collect();
    environment.resources = index.into_iter().map(|(name, positions)| (name, ids(positions))).collect();
    Ok((declared, effort))
}

impl Expanded {
    /// The body of a PUT of a resource, once its dependencies exist. `look` reads a resource.
    ///
    /// # Errors
    /// Fails if a referenced resource or property does not exist.
    pub fn body(
        &mut self,
        position: usize,
        look: &dyn Fn(&ResourceId) -> Option<Value>,
    ) -> Result<Value, ArmError> {
        let Some(declared) = self.resources.get(position) else {
            return Err(refusal(format!("there is no resource {position} in the template")));
        };
        let (written, iteration) = match &declared.body {
            ResourceBody::Known(value) => return Ok(value.clone()),
            ResourceBody::Later(written, iteration) => (written, iteration),
        };
        let iteration =
            iteration.as_ref().map(|(name, index)| LoopIteration { name, index: *index, outer: None });
        let look: ResourceReader<'_> = look;
        let scope = Scope::new(&self.environment, Some(look)).with_effort(self.effort);
        let id = declared.id.to_string();
        let value = scope.value(&Value::Object(written.clone()), iteration.as_ref());
        let value = value.and_then(|value| scope.made(value));
        let value = value.map_err(|error| error.at(&id).here(&id));
        let effort = scope.effort();
        self.effort = effort;
        value
    }

    /// The outputs, once all resources exist. `look` reads a resource. Repeated calls share the effort.
    ///
    /// # Errors
    /// Fails if a referenced resource or property does not exist.
    pub fn outputs(&mut self, look: &dyn Fn(&ResourceId) -> Option<Value>) -> Result<Value, ArmError> {
        let look: ResourceReader<'_> = look;
        let scope = Scope::new(&self.environment, Some(look)).with_effort(self.effort_of_outputs);
        let outputs = self.outputs_in(&scope);
        let effort = scope.effort();
        self.effort_of_outputs = effort;
        outputs
    }

    fn outputs_in(&self, scope: &Scope<'_>) -> Result<Value, ArmError> {
        let outputs = members(&self.outputs, "outputs")?;
        if outputs.len() > OUTPUTS_MAX {
            return Err(refusal(format!("a template has at most {OUTPUTS_MAX} outputs")));
        }
        let mut all = Map::new();
        for (name, declared) in outputs {
            let error = |error: TemplateError| failed_output(name, error.here(name));
            let condition = declared.get("condition").unwrap_or(&Value::Bool(true));
            if scope.value(condition, None).map_err(error)? == Value::Bool(false) {
                continue;
            }
            let kind = ParameterType::of(declared, name)?;
            let value = if declared["copy"].is_object() {
                let (mut entry, named) = (declared["copy"].clone(), Value::from(name.as_str()));
                entry["name"] = named;
                scope.repeated(&entry, None).map(|(_, list)| Value::Array(list))
            } else {
                scope.value(&declared["value"], None)
            };
            let value = value.and_then(|value| scope.made(value)).map_err(error)?;
            if !kind.fits(&value) {
                let kind = kind.word();
                return Err(failed_output(name, refusal(format!("the output is not of type {kind}"))));
            }
            all.insert(shown_name(name), shown(kind, &value));
        }
        Ok(all.into())
    }

    /// The parameters as a deployment shows them: secrets without values.
    #[must_use]
    pub fn parameters(&self) -> Value {
        let value = |parameter: &Parameter| match self
            .environment
            .names
            .get(&(NameKind::Parameter, parameter.name.to_lowercase()))
        {
            Some(ValueSource::Given(value)) => value.clone(),
            Some(ValueSource::Written(_) | ValueSource::Loop(_)) | None => Value::Null,
        };
        let shown = |parameter: &Parameter| (parameter.name.clone(), parameter.shown(&value(parameter)));
        Value::Object(self.parameters.iter().map(shown).collect())
    }
}

/// Name of an output in responses: `VMSS` is `vmss`, and `PublicIP` is `publicIP`. `az` relies on it.
fn shown_name(name: &str) -> String {
    let all: Vec<_> = name.chars().collect();
    let is_capital = |position: usize| all.get(position).is_some_and(char::is_ascii_uppercase);
    // A capital before a small letter begins a word; the first letter does not count.
    let begins_word = |position: usize| position > 0 && position + 1 < all.len() && !is_capital(position + 1);
    let end =
        (0..all.len()).find(|position| !is_capital(*position) || begins_word(*position)).unwrap_or(all.len());
    let small = |(position, letter): (usize, &char)| {
        if position < end { letter.to_ascii_lowercase() } else { *letter }
    };
    all.iter().enumerate().map(small).collect()
}

fn failed_output(name: &str, why: ArmError) -> ArmError {
    let message = format!("Unable to evaluate template outputs: '{name}'. Please see error details.");
    ArmError::new(why.status, "DeploymentOutputEvaluationFailed", message).because(vec![why])
}
