// A stand-in for the protocol library: records which servers were started and stopped, in order.

export interface StartedServer {
  readonly command: string;
  readonly args: readonly string[];
  readonly options: { readonly cwd: string; readonly env: Record<string, string | undefined> };
}

export const servers = {
  events: [] as string[],
  started: [] as StartedServer[],
  /** What the next start fails with, if anything. */
  failure: "",
  reset(): void {
    this.events = [];
    this.started = [];
    this.failure = "";
  },
};

export class LanguageClient {
  constructor(
    _id: string,
    _name: string,
    private readonly server: StartedServer,
  ) {}

  async start(): Promise<void> {
    servers.events.push("start");
    await new Promise((resolve) => setImmediate(resolve));
    if (servers.failure !== "") throw new Error(servers.failure);
    servers.started.push(this.server);
  }

  async stop(): Promise<void> {
    servers.events.push("stop");
    await new Promise((resolve) => setImmediate(resolve));
  }
}
