//! `plan`: what the model means to do, for whoever looks on.
//!
//! The model gives its plan whole each time; the parent gets it as the event `plan`, before the result of the call. Nothing
//! else happens, so there is nothing that anybody would have to agree to. A plan that is none is refused with a reason, and
//! no event is sent.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use swb_proto::agent::Plan;
use swb_proto::agent::plan::{LONGEST_TEXT, MOST_STEPS};

use super::{Call, Effect, Place, Tool, ToolError, arguments};

/// The tool.
#[derive(Debug)]
pub(super) struct PlanTool;

fn checked(value: &Value) -> Result<Plan, ToolError> {
    let plan: Plan = arguments(value)?;
    plan.check().map_err(|wrong| ToolError::refused(wrong.to_string()))?;
    Ok(plan)
}

impl Tool for PlanTool {
    fn name(&self) -> &'static str {
        "plan"
    }

    fn description(&self) -> &'static str {
        "Show the user your plan for work of several steps, and how far you have come. Give the whole plan each time: it \
         replaces the last one. Call it again whenever a step begins or is done."
    }

    fn input_schema(&self) -> Value {
        json!({
            "type": "object",
            "properties": {
                "steps": {
                    "type": "array", "maxItems": MOST_STEPS, "description": "All steps, in order; at most one is in progress.",
                    "items": {
                        "type": "object",
                        "properties": {
                            "text": { "type": "string", "minLength": 1, "maxLength": LONGEST_TEXT },
                            "status": { "type": "string", "enum": ["pending", "in_progress", "completed"] },
                        },
                        "required": ["text", "status"],
                    },
                },
                "note": { "type": "string", "maxLength": LONGEST_TEXT,
                          "description": "What else there is to say, such as why the plan has changed." },
            },
            "required": ["steps"],
        })
    }

    fn effect(&self, value: &Value, _place: &Place) -> Result<Effect, ToolError> {
        checked(value).map(|_| Effect::Tell)
    }

    fn run(&self, call: Call) -> BoxFuture<'_, Result<String, ToolError>> {
        async move {
            let plan = checked(&call.arguments)?;
            let answer = answer(&plan);
            call.printer.plan(plan).await;
            Ok(answer)
        }
        .boxed()
    }
}

/// What the model reads.
fn answer(plan: &Plan) -> String {
    let (done, steps) = (plan.completed(), plan.steps.len());
    match plan.current() {
        _ if steps == 0 => "There is no plan any more.".to_owned(),
        Some(current) => format!("{done} of {steps} steps are done. Now: {}", current.text),
        None => format!("{done} of {steps} steps are done."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plan_is_refused_with_a_reason() {
        let refusal = |value: Value| checked(&value).unwrap_err().to_string();
        let step = |status: &str| json!({ "text": "look", "status": status });
        for (arguments, reason) in [
            (json!(null), "missing field `steps`"),
            (json!({ "steps": "look" }), "expected a sequence"),
            (json!({ "steps": [step("done")] }), "unknown variant `done`, expected one of `pending`"),
            (json!({ "steps": [{ "status": "pending" }] }), "missing field `text`"),
            (json!({ "steps": [{ "text": "" }] }), "step 1 says nothing"),
            (json!({ "steps": vec![step("pending"); 51] }), "at most 50 steps; this one has 51"),
            (json!({ "steps": [{ "text": "x".repeat(301) }] }), "step 1 has 301 characters; the most is 300"),
            (json!({ "steps": [], "note": "x".repeat(301) }), "the note has 301 characters"),
            (
                json!({ "steps": [step("in_progress"), step("in_progress")] }),
                "steps 1 and 2 are both in progress",
            ),
        ] {
            assert!(refusal(arguments.clone()).contains(reason), "{}", refusal(arguments));
        }
    }

    #[test]
    fn the_model_reads_how_far_it_has_come() {
        let answer = |steps: Value| answer(&checked(&json!({ "steps": steps })).unwrap());
        let step = |status: &str| json!({ "text": status, "status": status });
        assert_eq!(answer(json!([])), "There is no plan any more.");
        assert_eq!(
            answer(json!([step("completed"), step("in_progress"), { "text": "without a status" }])),
            "1 of 3 steps are done. Now: in_progress"
        );
        assert_eq!(answer(json!([step("completed")])), "1 of 1 steps are done.");
    }
}
