// Drives the real AG-UI client as a front end does, and prints what it saw as one line of JSON.
// Its one argument: {library, url, headers, threadId, steps: [{say, props?, abortOn?} | {answer, status?, afterExpiry?} | {resume}]}.

import { pathToFileURL } from "node:url";

const plan = JSON.parse(process.argv[2]);
const seen = { runs: [], warnings: [], uncaught: [] };
for (const level of ["warn", "error"]) {
  console[level] = (...words) => seen.warnings.push(words.map(String).join(" "));
}
process.on("unhandledRejection", (error) => seen.uncaught.push(String(error)));
process.on("uncaughtException", (error) => seen.uncaught.push(String(error)));

const { HttpAgent } = await import(pathToFileURL(plan.library));
const agent = new HttpAgent({ url: plan.url, headers: plan.headers, threadId: plan.threadId });

let steps = 0;
for (const step of plan.steps) {
  const run = { kinds: [], calls: [], customs: [], count: 0, text: "" };
  seen.runs.push(run);
  const subscriber = {
    onEvent({ event }) {
      run.count += 1;
      if (run.kinds.length < 1000) run.kinds.push(event.type);
      if (event.type === "TEXT_MESSAGE_CONTENT") run.text += event.delta;
      if (event.type === "TOOL_CALL_START") run.calls.push(event.toolCallId);
      // An abort is an event that the client makes up itself.
      if (event.code !== "abort" && event.metadata?.["helios.agui.v1"]?.namespace !== "helios.agui.v1") run.lost = event.type;
      if (event.type === step.abortOn) agent.abortRun();
    },
    onCustomEvent({ event }) {
      if (run.customs.length < 1000) run.customs.push(event.name);
    },
    onRunFinishedEvent({ event }) {
      run.finished = event;
    },
    onRunErrorEvent({ event }) {
      run.error = { message: event.message, code: event.code };
    },
    onRunFailed({ error }) {
      run.failed = String(error);
    },
  };
  while (step.afterExpiry && agent.pendingInterrupts.some(({ expiresAt }) => new Date(expiresAt) >= new Date())) {
    await new Promise((done) => setTimeout(done, 20));
  }
  const input = { runId: `client-run-${process.pid}-${++steps}`, tools: [], context: [], forwardedProps: step.props ?? {} };
  if (step.say !== undefined) {
    agent.addMessage({ id: `user-${steps}`, role: "user", content: step.say });
  } else {
    input.resume = step.resume ?? agent.pendingInterrupts.map(({ id }) => ({
      interruptId: id,
      status: step.status ?? "resolved",
      ...(step.answer === undefined ? {} : { payload: step.answer }),
    }));
  }
  try {
    const { result, newMessages } = await agent.runAgent(input, subscriber);
    run.result = result;
    run.newMessages = newMessages;
  } catch (error) {
    run.rejected = { message: String(error), status: error.status, payload: error.payload };
  }
  run.pending = (agent.pendingInterrupts ?? []).map(({ id }) => id);
}
// What is raised after the last answer counts, too.
await new Promise((done) => setTimeout(done, 50));
seen.messages = agent.messages;
seen.state = agent.state;
process.stdout.write(JSON.stringify(seen));
