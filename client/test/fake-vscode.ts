// A stand-in for the editor: records what the extension asks of it, and lets a test act as the user.

type Listener = (event: unknown) => unknown;

/** Everything the stand-in remembers; `reset` makes it forget. */
export const editor = {
  settings: new Map<string, unknown>(),
  errors: [] as string[],
  logged: [] as string[],
  executed: [] as unknown[][],
  answer: undefined as string | undefined,
  handlers: new Map<string, () => unknown>(),
  onConfiguration: [] as Listener[],
  onTrust: [] as Listener[],
  folders: [] as { uri: { fsPath: string } }[],
  trusted: true,

  reset(): void {
    this.settings = new Map();
    this.errors = [];
    this.logged = [];
    this.executed = [];
    this.answer = undefined;
    this.handlers = new Map();
    this.onConfiguration = [];
    this.onTrust = [];
    this.folders = [];
    this.trusted = true;
  },

  /** The user changes a setting. */
  async change(name: string, value: unknown): Promise<void> {
    this.settings.set(name, value);
    const event = { affectsConfiguration: (asked: string) => asked === name };
    await Promise.all(this.onConfiguration.map((listener) => listener(event)));
  },

  /** The user trusts the workspace. */
  async trust(): Promise<void> {
    this.trusted = true;
    await Promise.all(this.onTrust.map((listener) => listener(undefined)));
  },
};

const disposable = { dispose(): void {} };

export const commands = {
  registerCommand(name: string, handler: () => unknown) {
    editor.handlers.set(name, handler);
    return disposable;
  },
  async executeCommand(...call: unknown[]): Promise<void> {
    editor.executed.push(call);
  },
};

export const window = {
  createOutputChannel() {
    return {
      ...disposable,
      info: (line: string) => void editor.logged.push(line),
      error: (line: string) => void editor.logged.push(line),
      show: () => void editor.executed.push(["show logs"]),
    };
  },
  async showErrorMessage(message: string): Promise<string | undefined> {
    editor.errors.push(message);
    return editor.answer;
  },
};

export const workspace = {
  getConfiguration: (section: string) => ({
    get: (name: string, fallback: unknown) => editor.settings.get(`${section}.${name}`) ?? fallback,
  }),
  onDidChangeConfiguration(listener: Listener) {
    editor.onConfiguration.push(listener);
    return disposable;
  },
  onDidGrantWorkspaceTrust(listener: Listener) {
    editor.onTrust.push(listener);
    return disposable;
  },
  get workspaceFolders() {
    return editor.folders;
  },
  get isTrusted() {
    return editor.trusted;
  },
};
