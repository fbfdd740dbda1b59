// The life of the language server: started, stopped, started again after a crash, and told what the settings mean.

import {
  type CancellationToken,
  type Disposable,
  type ExtensionContext,
  type LogOutputChannel,
  Uri,
  workspace,
} from "vscode";
import {
  State as ClientState,
  CloseAction,
  type ConfigurationParams,
  DidChangeConfigurationNotification,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
} from "vscode-languageclient/node";
import { type Environments, surroundingsOf } from "./environments";
import { expandPath, expandVariables } from "./expansion";
import type { Notices } from "./notices";
import { type Command, carriedServer, choosePython } from "./python";
import type { Environment, Status } from "./status";

/** What is checked: files, new texts, and cells of notebooks. */
export const SELECTOR = [
  { language: "python", scheme: "file" },
  { language: "python", scheme: "untitled" },
  { language: "python", scheme: "vscode-notebook-cell" },
];
const RESTARTING_SETTINGS = ["gradsight.enable", "gradsight.path"];
const MOST_CRASHES = 4;
const CRASH_PERIOD_MILLISECONDS = 3 * 60 * 1000;

type Table = Record<string, unknown>;
/** Runs a command of the server that came from a code lens or a code action. */
export type Runner = (command: string, args: unknown[], next: () => unknown) => unknown;

export class Server implements Disposable {
  /** Set by whoever shows the progress of commands. */
  runner: Runner = (_command, _args, next) => next();
  private client: LanguageClient | undefined;
  // Starts and stops are queued: two at once would leave a server that nobody stops.
  private queue: Promise<void> = Promise.resolve();
  private crashes: number[] = [];
  private readonly subscriptions: Disposable[];

  constructor(
    private readonly context: ExtensionContext,
    private readonly log: LogOutputChannel,
    private readonly notices: Notices,
    private readonly status: Status,
    private readonly environments: Environments,
  ) {
    this.subscriptions = [
      workspace.onDidGrantWorkspaceTrust(() => this.restart()),
      workspace.onDidChangeConfiguration((change) => {
        if (RESTARTING_SETTINGS.some((name) => change.affectsConfiguration(name))) return this.restart();
        // Without a server another interpreter may be the one that can run it.
        if (change.affectsConfiguration("gradsight.interpreter")) return this.interpretersChanged();
        return undefined;
      }),
      environments.onDidChange(() => this.interpretersChanged()),
    ];
  }

  /** The running client; undefined while there is none. */
  get running(): LanguageClient | undefined {
    return this.client?.state === ClientState.Running ? this.client : undefined;
  }

  /** The client, once a start or stop that is under way has ended; undefined when there is none then. */
  async ready(): Promise<LanguageClient | undefined> {
    await this.queue.catch(() => undefined);
    // A server that is started again after a crash: this waits for that very start.
    if (this.client?.state === ClientState.Starting) await this.client.start().catch(() => undefined);
    return this.running;
  }

  /** Start, or stop and start again. */
  restart(): Promise<void> {
    this.crashes = [];
    return this.enqueue(() => this.startAnew());
  }

  /** Stop for good. */
  stop(): Promise<void> {
    return this.enqueue(() => this.end());
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** Another interpreter may be the right one now: the server asks for its settings again, and goes on. */
  async interpretersChanged(): Promise<void> {
    const client = await this.ready();
    if (client === undefined) return this.restart();
    await client.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
    return this.tellEnvironment();
  }

  /** Show the interpreter of the active file. */
  async tellEnvironment(uri?: Uri): Promise<void> {
    const params = { command: "gradsight.environment", arguments: [uri?.toString() ?? ""] };
    const answer = await this.running
      ?.sendRequest<Environment | null>("workspace/executeCommand", params)
      .catch((error) => void this.log.debug(`no environment: ${error}`));
    if (answer) this.status.tell(answer);
  }

  private enqueue(step: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(step, step);
    return this.queue;
  }

  private async startAnew(): Promise<void> {
    await this.end();
    if (!workspace.getConfiguration("gradsight").get<boolean>("enable", true)) {
      this.log.info("switched off by gradsight.enable");
      return this.status.show("off");
    }
    this.status.show("starting");
    const command = await this.command();
    if (command === undefined) return;
    this.log.info(`starting ${[command.command, ...command.args].join(" ")}`);
    const options = { cwd: this.context.extensionPath };
    const executable = { command: command.command, args: [...command.args], options };
    const client = new LanguageClient("gradsight", "GradSight", executable, await this.clientOptions());
    client.onDidChangeState(({ newState }) => this.stateChanged(client, newState));
    this.client = client;
    try {
      await client.start();
    } catch (error) {
      this.failed(`cannot start its server: ${error instanceof Error ? error.message : String(error)}`);
    }
  }

  private async end(): Promise<void> {
    const client = this.client;
    this.client = undefined;
    // A server that has already died cannot be asked to stop; there is nothing left to do then.
    await client?.stop().catch(() => undefined);
  }

  /** How the server is started; undefined when it cannot be, which is then said. */
  private async command(): Promise<Command | undefined> {
    const own = workspace.getConfiguration("gradsight").get<string>("path", "");
    if (own.trim() !== "") return { command: expandPath(own, surroundingsOf(undefined)), args: ["server"] };
    const choice = await choosePython(await this.environments.candidates());
    if (choice.kind === "found") return carriedServer(choice.python, this.context.extensionPath);
    this.failed(choice.problem);
    return undefined;
  }

  private async clientOptions(): Promise<LanguageClientOptions> {
    const settings = JSON.parse(JSON.stringify(workspace.getConfiguration("gradsight"))) as Table;
    return {
      documentSelector: SELECTOR,
      outputChannel: this.log,
      // A request that fails is a matter for the log: the user did not ask for anything.
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      // A hover opens the page of a rule, without the web, and shows lines of cells.
      markdown: { isTrusted: { enabledCommands: ["gradsight.explainRule", "gradsight.showLine"] } },
      initializationOptions: { ...(await this.resolved(settings, undefined)), client: { pages: true } },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue }),
        closed: () => this.closed(),
      },
      middleware: {
        executeCommand: (name, args, next) => this.runner(name, args, () => next(name, args)),
        workspace: {
          configuration: async (params, token, next) => this.configuration(params, token, next),
        },
      },
    };
  }

  /** The settings that the server asks for, with everything in them that only the editor knows. */
  private async configuration(
    params: ConfigurationParams,
    token: CancellationToken,
    next: (params: ConfigurationParams, token: CancellationToken) => unknown,
  ): Promise<Table[]> {
    const answers = (await next(params, token)) as Table[];
    return Promise.all(
      answers.map((answer, index) => {
        const scope = params.items[index]?.scopeUri;
        return this.resolved(answer, scope === undefined ? undefined : Uri.parse(scope));
      }),
    );
  }

  private async resolved(settings: Table, folder: Uri | undefined): Promise<Table> {
    const around = surroundingsOf(folder);
    const expand = (value: unknown): unknown => {
      if (typeof value === "string") return expandVariables(value, around);
      if (Array.isArray(value)) return value.map(expand);
      if (typeof value !== "object" || value === null) return value;
      return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, expand(each)]));
    };
    const probe = { ...(expand(settings.probe) as Table | undefined), allowed: workspace.isTrusted };
    return { ...settings, interpreter: await this.environments.interpreterFor(folder), probe };
  }

  private stateChanged(client: LanguageClient, state: ClientState): void {
    if (client !== this.client) return;
    if (state === ClientState.Starting) this.status.show("starting");
    if (state === ClientState.Running) {
      this.status.show("ready");
      this.notices.forget();
      this.log.info(`ready: GradSight ${this.context.extension.packageJSON.version}`);
      void this.tellEnvironment();
    }
  }

  /** A server that ended by itself comes back, unless it keeps ending. */
  private closed(): { action: CloseAction; handled: boolean } {
    const now = Date.now();
    this.crashes = [...this.crashes.filter((time) => now - time < CRASH_PERIOD_MILLISECONDS), now];
    if (this.crashes.length <= MOST_CRASHES) {
      this.log.warn("the server ended; starting it again");
      return { action: CloseAction.Restart, handled: true };
    }
    this.failed(`has stopped: its server ended ${this.crashes.length} times in a row. The log says why.`);
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  private failed(problem: string): void {
    this.status.show("error", problem);
    this.notices.problem(problem);
  }
}
