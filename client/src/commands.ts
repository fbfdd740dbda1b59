// What the palette, the lenses and the status entry offer.  Each command asks the server and shows its answer.

import {
  type CodeAction,
  ConfigurationTarget,
  commands,
  type Disposable,
  type ExtensionContext,
  env,
  extensions,
  type LogOutputChannel,
  type NotebookCell,
  ProgressLocation,
  Range,
  type TextDocument,
  type TextEditor,
  Uri,
  ViewColumn,
  version,
  window,
  workspace,
} from "vscode";
import {
  ExecuteCommandRequest,
  LSPErrorCodes,
  ResponseError,
  WorkDoneProgress,
} from "vscode-languageclient/node";
import type { Environments } from "./environments";
import { type Graph, GraphPanel } from "./graph/panel";
import { Pages } from "./pages";
import { inspectPython } from "./python";
import { SELECTOR, type Server } from "./server";
import type { Status } from "./status";

/** What came of a run, in the server's words. */
interface ProbeAnswer {
  readonly summary: string;
  /** A page about the run: how it was run, each finding with its verdict, what the program printed. */
  readonly details?: string;
  /** The same for the log. */
  readonly log?: string;
  /** Whether shapes and gradients were seen that hints could show. */
  readonly observed?: boolean;
  /** How to ask for the graph of a fault that was seen, if it has one to show. */
  readonly graph?: unknown[] | null;
}

/** The server's commands that run the user's code, and what is said while they run. */
const PROBES: Readonly<Record<string, string>> = {
  "gradsight.probeFile": "Running the file",
  "gradsight.probeFunction": "Running the function",
  "gradsight.probeCell": "Running the cell",
  "gradsight.proveFinding": "Proving the finding",
  "gradsight.verifyFix": "Testing the fixes",
  "gradsight.graph": "Recording the graph",
  "gradsight.refreshFacts": "Measuring the operators of your torch",
};
const SAMPLE = "client/samples/first_steps.py";
/** How much of the log goes with the debug information. */
const LOGGED_LINES = 60;
const HINTS_OFFERED = "gradsight.hintsOffered";
/** A place of the trail of a finding. */
interface Step {
  readonly role: string;
  readonly uri: string;
  readonly line: number;
  readonly character: number;
  readonly message: string;
}

export class Commands implements Disposable {
  private readonly subscriptions: Disposable[];
  private readonly graph: GraphPanel;
  private readonly pages = new Pages();
  private probes = 0;

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly server: Server,
    private readonly status: Status,
    private readonly environments: Environments,
  ) {
    this.graph = new GraphPanel(context.extensionUri);
    server.runner = (command, args, next) => (command in PROBES ? this.probe(command, args) : next());
    const table: Record<string, (target?: never, more?: never) => unknown> = {
      "gradsight.probe.file": () => this.probeHere("gradsight.probeFile"),
      "gradsight.probe.function": () => this.probeHere("gradsight.probeFunction"),
      "gradsight.probe.cell": (cell?: NotebookCell) => this.probeHere("gradsight.probeCell", cell),
      "gradsight.probe.fix": () => this.probeHere("gradsight.verifyFix"),
      "gradsight.probe.finding": () => this.probeHere("gradsight.proveFinding"),
      "gradsight.probe.cancel": () => this.ask("gradsight.cancelProbe", []),
      "gradsight.showGraph": () => this.showGraph(),
      "gradsight.copyRepro": () => this.copyRepro(),
      "gradsight.explainTraceback": () => this.explainTraceback(),
      "gradsight.fixAll": () => this.fixAll(),
      "gradsight.measureFacts": () => this.probe("gradsight.refreshFacts", [this.uri()]),
      "gradsight.goToWrite": () => this.goTo("written"),
      "gradsight.goToSaved": () => this.goTo("saved"),
      "gradsight.goToBackward": () => this.goTo("needed"),
      "gradsight.showLine": (uri?: string, line?: number) => this.showLine(uri ?? "", line ?? 0),
      "gradsight.explainRule": (code?: string) => this.explainRule(code),
      "gradsight.ignoreRule": (code?: string) => this.ignoreRule(code),
      "gradsight.selectInterpreter": () => this.selectInterpreter(),
      "gradsight.restart": () => this.restart(),
      "gradsight.showLogs": () => log.show(),
      "gradsight.copyDebugInformation": () => this.copyDebugInformation(),
      "gradsight.openSample": () => this.openSample(),
    };
    this.subscriptions = Object.entries(table).map(([name, act]) => commands.registerCommand(name, act));
    this.subscriptions.push(this.graph, this.pages);
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** A probe of what the cursor is in, or of the cell whose button was pressed. */
  private async probeHere(command: string, cell?: NotebookCell): Promise<void> {
    const place = cell === undefined ? this.place() : [cell.document.uri.toString(), 0];
    if (place !== undefined) await this.probe(command, place);
  }

  private async probe(command: string, args: unknown[]): Promise<void> {
    const answer = await this.runInSight<ProbeAnswer>(command, args);
    if (!answer) return;
    const { graph, details } = answer;
    this.log.info(answer.log ?? answer.summary);
    const buttons = [...(graph ? ["Show Graph"] : []), details ? "Show Details" : "Show Logs"];
    void window.showInformationMessage(answer.summary, ...buttons).then((button) => {
      if (button === "Show Graph" && graph) return this.showGraph(graph);
      if (button === "Show Details" && details) return this.pages.show("Last run", details);
      if (button === "Show Logs") this.log.show();
      return undefined;
    });
    if (answer.observed) await this.offerHints();
  }

  /** After the first run that saw tensors: shapes and gradients can stand in the editor.  Asked once. */
  private async offerHints(): Promise<void> {
    const settings = workspace.getConfiguration("gradsight");
    if (settings.get<boolean>("inlayHints", false) || this.context.globalState.get(HINTS_OFFERED)) return;
    await this.context.globalState.update(HINTS_OFFERED, true);
    const text = "GradSight: show the shapes and gradients of this run next to your tensors?";
    const answer = await window.showInformationMessage(text, "Show", "No");
    if (answer === "Show") await settings.update("inlayHints", true, ConfigurationTarget.Global);
  }

  /** Go to the line of the trail with a role; choose where there are several. */
  private async goTo(role: string): Promise<void> {
    const place = this.place();
    const answer = place && (await this.ask<{ steps: Step[] }>("gradsight.trail", place));
    const steps = answer ? answer.steps.filter((step) => step.role === role) : [];
    const items = steps.map((step) => ({ label: step.message, description: `line ${step.line + 1}`, step }));
    const chosen = items.length > 1 ? await window.showQuickPick(items) : items[0];
    if (chosen === undefined && answer && items.length === 0)
      return void window.showInformationMessage("GradSight: there is no such line for the finding here.");
    if (chosen === undefined) return;
    await this.showLine(chosen.step.uri, chosen.step.line, chosen.step.character);
  }

  /** Put the cursor into a line of a file, or of a cell. */
  private async showLine(uri: string, line: number, character = 0): Promise<void> {
    const selection = new Range(line, character, line, character);
    const target = Uri.parse(uri);
    const shown = window.showTextDocument(target, { selection });
    // The notebook shows the cell; a text editor of its own, which is asked for here, a cell may not have.
    await (target.scheme === "file" ? shown : Promise.resolve(shown).catch(() => undefined));
  }

  /** The manual page of a rule: of the one that is named, of the finding at the cursor, or of one that is chosen. */
  private async explainRule(code?: string): Promise<void> {
    const asked = code === undefined ? (this.place(true) ?? ["", 0]) : ["", 0, code];
    const answer = await this.ask<{ code: string; markdown: string; rules: [string, string, string][] }>(
      "gradsight.rulePage",
      asked,
    );
    if (!answer) return;
    if (answer.markdown) return this.pages.show(answer.code, answer.markdown);
    const items = answer.rules.map(([label, description, detail]) => ({ label, description, detail }));
    const chosen = await window.showQuickPick(items, { title: "Explain Rule", matchOnDescription: true });
    if (chosen !== undefined) await this.explainRule(chosen.label);
  }

  /** Ignore a rule everywhere in this workspace. */
  private async ignoreRule(code?: string): Promise<void> {
    if (code === undefined) return;
    const settings = workspace.getConfiguration("gradsight");
    const ignored = settings.get<string[]>("ignore", []);
    const target =
      workspace.workspaceFolders === undefined ? ConfigurationTarget.Global : ConfigurationTarget.Workspace;
    await settings.update("ignore", [...new Set([...ignored, code])], target);
    void window.showInformationMessage(`GradSight: ${code} is ignored in this workspace (gradsight.ignore).`);
  }

  /** The interpreter that code is run in: chosen in the Python extension where there is one, else in our setting. */
  private async selectInterpreter(): Promise<void> {
    if (extensions.getExtension("ms-python.python") !== undefined)
      return void commands.executeCommand("python.setInterpreter");
    const browse = "Browse…";
    const asked = [...new Set(await this.environments.candidates())].map((path) => inspectPython(path));
    const found = (await Promise.all(asked)).filter((python) => python !== undefined);
    const items = found
      .map(({ path, version, environment }) => ({
        label: path,
        description: `Python ${version.join(".")} · ${environment}`,
      }))
      .filter((item, at, all) => all.findIndex((one) => one.description === item.description) === at);
    const title = "Select Interpreter for Runs";
    const chosen = await window.showQuickPick([...items, { label: browse, description: "" }], { title });
    const files =
      chosen?.label === browse ? await window.showOpenDialog({ title: "Python that has torch" }) : undefined;
    const python = chosen?.label === browse ? files?.[0]?.fsPath : chosen?.label;
    if (python !== undefined)
      await workspace.getConfiguration("gradsight").update("interpreter", python, ConfigurationTarget.Global);
  }

  private async restart(): Promise<void> {
    await this.server.restart();
    if (this.server.running !== undefined) void window.setStatusBarMessage("GradSight: restarted", 3000);
  }

  private async showGraph(args: unknown[] | undefined = this.place()): Promise<void> {
    if (args === undefined) return;
    const graph = await this.runInSight<Graph & { problem?: string }>("gradsight.graph", args);
    if (graph?.problem) void window.showInformationMessage(graph.problem);
    else if (graph) this.graph.show(graph);
  }

  private async copyRepro(): Promise<void> {
    const place = this.place();
    const answer = place && (await this.ask<{ text: string; problem?: string }>("gradsight.repro", place));
    if (!answer) return;
    if (answer.problem) return void window.showInformationMessage(answer.problem);
    await env.clipboard.writeText(answer.text);
    void window.showInformationMessage("A minimal program that shows the finding is on the clipboard.");
  }

  /** Explains the traceback that is selected, or on the clipboard, or that the user pastes. */
  private async explainTraceback(): Promise<void> {
    const editor = window.activeTextEditor;
    const selected = editor?.document.getText(editor.selection) ?? "";
    const copied = await env.clipboard.readText();
    const isTraceback = (text: string) => /Traceback|Error\b/.test(text);
    const text = [selected, copied].find(isTraceback) ?? (await this.paste());
    const answer = text && (await this.ask<{ markdown: string }>("gradsight.explainError", [text]));
    if (!answer) return;
    await this.pages.show("Explanation", answer.markdown);
  }

  private paste(): Thenable<string | undefined> {
    const placeHolder = "RuntimeError: one of the variables needed for gradient computation …";
    const prompt = "Paste the traceback, or its last line";
    return window.showInputBox({ title: "Explain an Autograd Error", prompt, placeHolder });
  }

  /** Fixes the file in sight by the server's own action, wherever the focus is. */
  private async fixAll(): Promise<void> {
    const document = pythonEditor()?.document;
    if (document === undefined) return void this.place();
    const asked = [document.uri, new Range(0, 0, document.lineCount, 0), "source.fixAll.gradsight", 1];
    const found = await commands.executeCommand<CodeAction[]>("vscode.executeCodeActionProvider", ...asked);
    const action = found[0];
    if (action?.edit !== undefined) await workspace.applyEdit(action.edit);
    const counts = action?.title.match(/\((.+)\)$/)?.[1] ?? "there is no safe fix in this file";
    void window.showInformationMessage(`GradSight: ${counts}.`);
  }

  private async copyDebugInformation(): Promise<void> {
    const environment = await this.ask<object>("gradsight.environment", [this.uri()], true);
    const folder = workspace.workspaceFolders?.[0]?.uri;
    const settings = JSON.parse(JSON.stringify(workspace.getConfiguration("gradsight", folder))) as object;
    const told = {
      gradsight: this.context.extension.packageJSON.version,
      editor: `${env.appName} ${version} (${env.uiKind === 2 ? "web" : "desktop"})`,
      platform: `${process.platform} ${process.arch}`,
      trusted: workspace.isTrusted,
      folders: workspace.workspaceFolders?.length ?? 0,
      python: extensions.all.map(({ id }) => id).filter((id) => id.startsWith("ms-python.")),
      server: environment ?? "does not run",
      settings,
      log: await this.lastLines(),
    };
    await env.clipboard.writeText(`\`\`\`json\n${JSON.stringify(told, null, 2)}\n\`\`\`\n`);
    void window.showInformationMessage("GradSight's debug information is on the clipboard.");
  }

  /** The end of the log, as the editor keeps it in a file; without what the user's programs printed. */
  private async lastLines(): Promise<string[]> {
    const file = Uri.joinPath(this.context.logUri, "GradSight.log");
    const read = Promise.resolve(workspace.fs.readFile(file));
    return headlines(new TextDecoder().decode(await read.catch(() => new Uint8Array())));
  }

  /** Opens a copy of the sample with the cursor in its first fault, beside what is not a text: the walkthrough stays in sight. */
  private async openSample(): Promise<void> {
    const bytes = await workspace.fs.readFile(Uri.joinPath(this.context.extensionUri, SAMPLE));
    const copy = Uri.joinPath(this.context.globalStorageUri, "first_steps.py");
    await workspace.fs.writeFile(copy, bytes);
    const document = await workspace.openTextDocument(copy);
    const fault = document.positionAt(new TextDecoder().decode(bytes).indexOf("gate *="));
    const viewColumn = window.activeTextEditor === undefined ? ViewColumn.Beside : ViewColumn.Active;
    await window.showTextDocument(document, { viewColumn, selection: new Range(fault, fault) });
  }

  /** Runs a command of the server with a notification that can be cancelled. */
  private async runInSight<Answer>(command: string, args: unknown[]): Promise<Answer | undefined> {
    const client = await this.server.ready();
    if (client === undefined) return this.noServer();
    if (!workspace.isTrusted) return this.noTrust();
    const workDoneToken = `gradsight-probe-${++this.probes}`;
    const title = `GradSight: ${PROBES[command] ?? "Working"}`;
    this.status.show("probing");
    void commands.executeCommand("setContext", "gradsight.isRunning", true);
    try {
      return await window.withProgress(
        { location: ProgressLocation.Notification, title, cancellable: true },
        async (progress, token) => {
          const listening = client.onProgress(WorkDoneProgress.type, workDoneToken, (told) => {
            if (told.kind !== "end" && told.message !== undefined) progress.report({ message: told.message });
          });
          try {
            const params = { command, arguments: args, workDoneToken };
            return (await client.sendRequest(ExecuteCommandRequest.type, params, token)) as Answer;
          } finally {
            listening.dispose();
          }
        },
      );
    } catch (error) {
      return this.refused(error);
    } finally {
      void commands.executeCommand("setContext", "gradsight.isRunning", false);
      this.status.show(this.server.running === undefined ? "starting" : "ready");
    }
  }

  /** Runs a command of the server that answers at once. */
  private async ask<Answer>(command: string, args: unknown[], isQuiet = false): Promise<Answer | undefined> {
    const client = await this.server.ready();
    if (client === undefined) return isQuiet ? undefined : this.noServer();
    try {
      return (await client.sendRequest(ExecuteCommandRequest.type, { command, arguments: args })) as Answer;
    } catch (error) {
      return isQuiet ? undefined : this.refused(error);
    }
  }

  private refused(error: unknown): undefined {
    const isCancelled = error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled;
    if (isCancelled) return void this.log.info("cancelled");
    const text = error instanceof Error ? error.message : String(error);
    this.log.error(text);
    return void window.showWarningMessage(`GradSight: ${text}`);
  }

  private noServer(): undefined {
    void window.showWarningMessage("GradSight's server does not run; its status entry says why.");
  }

  private noTrust(): undefined {
    const manage = "Manage Workspace Trust";
    const text = "GradSight: this runs the code of the workspace, which you have not trusted yet.";
    void window.showWarningMessage(text, manage).then((answer) => {
      return answer === manage ? commands.executeCommand("workbench.trust.manage") : undefined;
    });
  }

  /** The address of the open Python text and the line of the cursor; says so when there is none. */
  private place(isQuiet = false): [string, number] | undefined {
    const { activeTextEditor: active, activeNotebookEditor: book } = window;
    // A cell that is chosen, but not written in, has no editor.
    const cell = active === undefined ? book?.notebook.cellAt(book.selection.start).document : undefined;
    if (cell !== undefined && isPython(cell)) return [cell.uri.toString(), 0];
    const editor = pythonEditor();
    if (editor !== undefined) return [editor.document.uri.toString(), editor.selection.active.line];
    if (!isQuiet) void window.showInformationMessage("GradSight: open a Python file first.");
    return undefined;
  }

  private uri(): string {
    return pythonEditor()?.document.uri.toString() ?? "";
  }
}

/** The entries of a log by their first lines; those about trouble whole.  The details of a run are the user's own. */
export function headlines(log: string): string[] {
  let isTrouble = false;
  const lines = log.split("\n").filter((line) => {
    const [, level] = /^\d{4}-\d\d-\d\d \S+ \[(\w+)\]/.exec(line) ?? [];
    if (level !== undefined) isTrouble = level === "error" || level === "warning";
    return line !== "" && (level !== undefined || isTrouble);
  });
  return lines.slice(-LOGGED_LINES);
}

/** The editor that is written in; else one that is in sight, beside a page or a graph. */
function pythonEditor(): TextEditor | undefined {
  const inSight = [window.activeTextEditor, ...window.visibleTextEditors];
  return inSight.find((editor) => editor !== undefined && isPython(editor.document));
}

function isPython({ languageId, uri }: TextDocument): boolean {
  return SELECTOR.some(({ language, scheme }) => languageId === language && uri.scheme === scheme);
}
