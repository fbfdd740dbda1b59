// The VS Code side: starts the language server, restarts it when its settings change, and says what is missing.

import { homedir } from "node:os";
import { commands, type ExtensionContext, type LogOutputChannel, window, workspace } from "vscode";
import { LanguageClient, type LanguageClientOptions } from "vscode-languageclient/node";
import { chooseInterpreter, type Surroundings, serverCommand, serverEnvironment } from "./server";

const RESTARTING_SETTINGS = ["gradsight.enable", "gradsight.interpreter"];

let client: LanguageClient | undefined;
// Starts and stops are queued: two at once would leave a server that nobody stops.
let queue: Promise<void> = Promise.resolve();
let lastProblem = "";

/** Called by the editor when the first Python file is opened. */
export async function activate(context: ExtensionContext): Promise<void> {
  const log = window.createOutputChannel("GradSight", { log: true });
  const restart = () => enqueue(() => startAnew(context, log));
  context.subscriptions.push(
    log,
    commands.registerCommand("gradsight.restart", restart),
    commands.registerCommand("gradsight.showLogs", () => log.show()),
    workspace.onDidGrantWorkspaceTrust(restart),
    workspace.onDidChangeConfiguration((change) => {
      if (RESTARTING_SETTINGS.some((name) => change.affectsConfiguration(name))) return restart();
      return undefined;
    }),
  );
  await restart();
}

/** Called by the editor when it closes. */
export function deactivate(): Promise<void> {
  return enqueue(stop);
}

function enqueue(step: () => Promise<void>): Promise<void> {
  queue = queue.then(step, step);
  return queue;
}

async function startAnew(context: ExtensionContext, log: LogOutputChannel): Promise<void> {
  await stop();
  const settings = workspace.getConfiguration("gradsight");
  if (!settings.get<boolean>("enable", true)) return log.info("switched off by gradsight.enable");
  const choice = await chooseInterpreter(surroundings(settings.get<string>("interpreter", "")));
  if (choice.kind === "missing") return complain(choice.problem, log);
  const { command, args } = serverCommand(choice.interpreter);
  log.info(`starting ${[command, ...args].join(" ")}`);
  const options = { cwd: context.extensionPath, env: serverEnvironment(process.env) };
  client = new LanguageClient("gradsight", "GradSight", { command, args, options }, {
    documentSelector: [
      { language: "python", scheme: "file" },
      { language: "python", scheme: "untitled" },
      { language: "python", scheme: "vscode-notebook-cell" },
    ],
    outputChannel: log,
  } satisfies LanguageClientOptions);
  try {
    await client.start();
    lastProblem = "";
  } catch (error) {
    client = undefined;
    complain(`the server did not start: ${error instanceof Error ? error.message : String(error)}`, log);
  }
}

async function stop(): Promise<void> {
  const running = client;
  client = undefined;
  // A server that has already died cannot be asked to stop; there is nothing left to do then.
  await running?.stop().catch(() => undefined);
}

function surroundings(setting: string): Surroundings {
  return {
    setting,
    workspaceFolder: workspace.workspaceFolders?.[0]?.uri.fsPath,
    isTrusted: workspace.isTrusted,
    home: homedir(),
    env: process.env,
    isWindows: process.platform === "win32",
  };
}

/** Shows each distinct problem once, and logs it every time. */
function complain(problem: string, log: LogOutputChannel): void {
  log.error(problem);
  if (problem === lastProblem) return;
  lastProblem = problem;
  void window.showErrorMessage(`GradSight: ${problem}`, "Open Settings", "Show Logs").then((answer) => {
    if (answer === "Open Settings")
      return commands.executeCommand("workbench.action.openSettings", "gradsight");
    if (answer === "Show Logs") log.show();
    return undefined;
  });
}
