// A stand-in for the protocol library: records servers that are started and stopped, and answers as a test tells it.

interface StartedServer {
  command: string;
  args: string[];
  options: { cwd?: string };
}
interface Options {
  initializationOptions: Record<string, unknown>;
  revealOutputChannelOn: number;
  markdown: { isTrusted: { enabledCommands: string[] } };
  errorHandler: { closed(): { action: number; handled: boolean } };
  middleware: {
    executeCommand(name: string, args: unknown[], next: (name: string, args: unknown[]) => unknown): unknown;
    workspace: {
      configuration(params: unknown, token: unknown, next: unknown): Promise<Record<string, unknown>[]>;
    };
  };
}
type Params = { command: string; arguments: unknown[]; workDoneToken?: string };

/** What happened to servers, in order. */
export const servers = {
  events: [] as string[],
  started: [] as StartedServer[],
  options: [] as Options[],
  asked: [] as Params[],
  told: [] as unknown[],
  answers: {} as Record<string, unknown>,
  /** What the next start fails with, if anything. */
  failure: "",
  progress: undefined as ((value: unknown) => void) | undefined,
  reset(): void {
    Object.assign(this, {
      events: [],
      started: [],
      options: [],
      asked: [],
      told: [],
      answers: {},
      failure: "",
    });
  },
};

export const State = { Stopped: 1, Running: 2, Starting: 3 };
export const CloseAction = { DoNotRestart: 1, Restart: 2 };
export const RevealOutputChannelOn = { Never: 4 };
export const ErrorAction = { Continue: 1, Shutdown: 2 };
export const ExecuteCommandRequest = { type: "workspace/executeCommand" };
export const DidChangeConfigurationNotification = { type: "workspace/didChangeConfiguration" };
export const WorkDoneProgress = { type: "progress" };
export const LSPErrorCodes = { RequestCancelled: -32800 };
export class ResponseError extends Error {
  constructor(
    readonly code: number,
    message: string,
  ) {
    super(message);
  }
}

export class LanguageClient {
  state = State.Stopped;
  private listeners: ((change: { newState: number }) => void)[] = [];

  constructor(
    _id: string,
    _name: string,
    private readonly server: StartedServer,
    options: Options,
  ) {
    servers.options.push(options);
  }

  onDidChangeState(listener: (change: { newState: number }) => void): void {
    this.listeners.push(listener);
  }

  async start(): Promise<void> {
    servers.events.push("start");
    this.move(State.Starting);
    await new Promise((resolve) => setImmediate(resolve));
    if (servers.failure !== "") throw new Error(servers.failure);
    servers.started.push(this.server);
    this.move(State.Running);
  }

  async stop(): Promise<void> {
    servers.events.push("stop");
    this.move(State.Stopped);
    await new Promise((resolve) => setImmediate(resolve));
  }

  async sendRequest(_type: string, params: Params, token?: { onCancellationRequested(f: () => void): void }) {
    servers.asked.push(params);
    const answer = servers.answers[params.command];
    if (answer instanceof Error) throw answer;
    if (answer !== "wait") return answer ?? null;
    return new Promise((_resolve, reject) => {
      const error = new ResponseError(LSPErrorCodes.RequestCancelled, "cancelled");
      token?.onCancellationRequested(() => reject(error));
    });
  }

  async sendNotification(_type: string, params: unknown): Promise<void> {
    servers.told.push(params);
  }

  onProgress(_type: unknown, _token: string, listener: (value: unknown) => void) {
    servers.progress = listener;
    return { dispose(): void {} };
  }

  private move(state: number): void {
    this.state = state;
    for (const listener of this.listeners) listener({ newState: state });
  }
}
