// A stand-in for the editor: records what the extension asks of it, and lets a test act as the user.

type Listener = (event: never) => unknown;

/** Everything the stand-in remembers; `reset` makes it forget. */
export const editor = {
  settings: new Map<string, unknown>(),
  errors: [] as string[],
  warnings: [] as string[],
  messages: [] as string[],
  logged: [] as string[],
  executed: [] as unknown[][],
  answers: {} as Record<string, unknown>,
  applied: [] as unknown[],
  answer: undefined as string | undefined,
  handlers: new Map<string, (...args: unknown[]) => unknown>(),
  listeners: {} as Record<string, Listener[]>,
  folders: [] as { uri: Uri }[],
  extensions: new Map<string, unknown>(),
  active: undefined as unknown,
  book: undefined as unknown,
  visible: [] as unknown[],
  clipboard: "",
  /** What showing a text fails with, if anything. */
  refusal: "",
  status: {} as Record<string, unknown>,
  providers: new Map<string, { provideTextDocumentContent(): string }>(),
  panels: [] as FakePanel[],
  shown: [] as unknown[][],
  cancel: undefined as (() => void) | undefined,
  reports: [] as unknown[],
  diagnostics: [] as unknown[],
  picks: [] as unknown[],
  written: [] as unknown[],
  trusted: true,

  reset(): void {
    Object.assign(this, {
      settings: new Map(),
      errors: [],
      warnings: [],
      messages: [],
      logged: [],
      executed: [],
      answers: {},
      applied: [],
      answer: undefined,
      handlers: new Map(),
      listeners: {},
      folders: [],
      extensions: new Map(),
      active: undefined,
      book: undefined,
      visible: [],
      clipboard: "",
      refusal: "",
      status: {},
      providers: new Map(),
      panels: [],
      shown: [],
      cancel: undefined,
      reports: [],
      diagnostics: [],
      picks: [],
      written: [],
      trusted: true,
    });
  },

  /** The user changes a setting. */
  async change(name: string, value: unknown): Promise<void> {
    this.settings.set(name, value);
    await this.tell("configuration", { affectsConfiguration: (asked: string) => asked === name });
  },

  /** The user trusts the workspace. */
  async trust(): Promise<void> {
    this.trusted = true;
    await this.tell("trust", undefined);
  },

  /** The user runs a command of the palette. */
  async run(command: string, ...args: unknown[]): Promise<unknown> {
    return this.handlers.get(command)?.(...args);
  },

  /** A cell of a notebook is chosen, and nobody writes in it. */
  select(uri: string): void {
    const document = { uri: Uri.parse(uri), languageId: "python" };
    this.active = undefined;
    this.book = { notebook: { cellAt: () => ({ document }) }, selection: { start: 0 } };
  },

  /** A Python file is open and the cursor in one of its lines. */
  open(uri: string, line: number, selected = ""): void {
    this.active = {
      document: { uri: Uri.parse(uri), languageId: "python", getText: () => selected },
      selection: { active: { line } },
    };
  },

  listen(name: string, listener: Listener) {
    const list = this.listeners[name] ?? [];
    this.listeners[name] = list;
    list.push(listener);
    return disposable;
  },

  async tell(name: string, event: unknown): Promise<void> {
    await Promise.all((this.listeners[name] ?? []).map((listener) => listener(event as never)));
  },
};

const disposable = { dispose(): void {} };

export class EventEmitter<T> {
  private readonly own: ((value: T) => unknown)[] = [];
  event = (listener: (value: T) => unknown) => {
    this.own.push(listener);
    return disposable;
  };
  fire(value: T): void {
    for (const listener of this.own) listener(value);
  }
  dispose(): void {}
}

export class Uri {
  constructor(
    readonly scheme: string,
    readonly fsPath: string,
  ) {}
  static parse(text: string): Uri {
    const [scheme = "", rest = ""] = text.split(/:(?:\/\/)?/);
    return new Uri(scheme, decodeURIComponent(rest));
  }
  static file(path: string): Uri {
    return new Uri("file", path);
  }
  static joinPath(base: Uri, ...parts: string[]): Uri {
    return new Uri(base.scheme, [base.fsPath, ...parts].join("/"));
  }
  toString(): string {
    return this.scheme === "file" ? `file://${this.fsPath}` : `${this.scheme}:${this.fsPath}`;
  }
}

export class Range {
  constructor(
    readonly start: unknown,
    readonly end: unknown,
  ) {}
}

export class ThemeColor {
  constructor(readonly id: string) {}
}
export const OverviewRulerLane = { Center: 2 };
export const ConfigurationTarget = { Global: 1, Workspace: 2 };
export const ViewColumn = { One: 1, Active: -1, Beside: -2 };
export const ProgressLocation = { Notification: 15 };
export const LanguageStatusSeverity = { Information: 0, Warning: 1, Error: 2 };
export const version = "1.99.0";
export const env = {
  appName: "Stand-in",
  uiKind: 1,
  clipboard: {
    readText: async () => editor.clipboard,
    writeText: async (text: string) => {
      editor.clipboard = text;
    },
  },
};

export const extensions = {
  all: [{ id: "ms-python.python" }, { id: "else.where" }],
  getExtension(id: string) {
    const api = editor.extensions.get(id);
    return api === undefined
      ? undefined
      : {
          isActive: false,
          activate: async () => {
            if (api instanceof Error) throw api;
            return api;
          },
        };
  },
  onDidChange: (listener: Listener) => editor.listen("extensions", listener),
};

export const languages = {
  createLanguageStatusItem() {
    editor.status = { dispose(): void {} };
    return editor.status;
  },
  getDiagnostics: () => editor.diagnostics,
  onDidChangeDiagnostics: (listener: Listener) => editor.listen("diagnostics", listener),
};

export const commands = {
  registerCommand(name: string, handler: () => unknown) {
    editor.handlers.set(name, handler);
    return disposable;
  },
  async executeCommand(...call: unknown[]): Promise<unknown> {
    editor.executed.push(call);
    return editor.answers[String(call[0])];
  },
};

/** A panel whose page cannot run; a test speaks for it. */
export class FakePanel {
  readonly sent: unknown[] = [];
  private listeners: ((message: unknown) => unknown)[] = [];
  private onClose: (() => void)[] = [];
  readonly webview = {
    html: "",
    cspSource: "https://panel",
    asWebviewUri: (uri: Uri) => uri,
    onDidReceiveMessage: (listener: (message: unknown) => unknown) => {
      this.listeners.push(listener);
      return disposable;
    },
    postMessage: async (message: unknown) => void this.sent.push(message),
  };
  onDidDispose(listener: () => void) {
    this.onClose.push(listener);
    return disposable;
  }
  reveal(): void {}
  dispose(): void {
    for (const listener of this.onClose) listener();
  }
  async say(message: unknown): Promise<void> {
    await Promise.all(this.listeners.map((listener) => listener(message)));
  }
}

const note = (line: string) => void editor.logged.push(line);

export const window = {
  get visibleTextEditors() {
    return editor.visible;
  },
  get activeNotebookEditor() {
    return editor.book;
  },
  get activeTextEditor() {
    return editor.active;
  },
  onDidChangeActiveTextEditor: (listener: Listener) => editor.listen("active", listener),
  onDidChangeTextEditorSelection: (listener: Listener) => editor.listen("selection", listener),
  createTextEditorDecorationType: () => ({ ...disposable }),
  setStatusBarMessage: (text: string) => void editor.messages.push(text),
  async showQuickPick(items: unknown[]): Promise<unknown> {
    editor.picks = items;
    return items[0];
  },
  async showOpenDialog(): Promise<unknown> {
    return undefined;
  },
  createOutputChannel() {
    return {
      ...disposable,
      debug: note,
      info: note,
      warn: note,
      error: note,
      show: () => void editor.executed.push(["show logs"]),
    };
  },
  createWebviewPanel() {
    const panel = new FakePanel();
    editor.panels.push(panel);
    return panel;
  },
  async showErrorMessage(message: string): Promise<string | undefined> {
    editor.errors.push(message);
    return editor.answer;
  },
  async showWarningMessage(message: string): Promise<string | undefined> {
    editor.warnings.push(message);
    return editor.answer;
  },
  async showInformationMessage(message: string): Promise<string | undefined> {
    editor.messages.push(message);
    return editor.answer;
  },
  async showInputBox(): Promise<string | undefined> {
    return editor.answer;
  },
  async showTextDocument(...call: unknown[]): Promise<void> {
    editor.shown.push(call);
    if (editor.refusal !== "") throw new Error(editor.refusal);
  },
  async withProgress(_options: unknown, work: (progress: unknown, token: unknown) => Promise<unknown>) {
    const cancelled = new EventEmitter<void>();
    const token = { isCancellationRequested: false, onCancellationRequested: cancelled.event };
    editor.cancel = () => cancelled.fire();
    return work({ report: (report: unknown) => void editor.reports.push(report) }, token);
  },
};

export const workspace = {
  getConfiguration: (section: string) => ({
    get: (name: string, fallback: unknown) => editor.settings.get(`${section}.${name}`) ?? fallback,
    update: async (name: string, value: unknown) => void editor.settings.set(`${section}.${name}`, value),
    toJSON: () =>
      Object.fromEntries(
        [...editor.settings].map(([name, value]) => [name.replace(`${section}.`, ""), value]),
      ),
  }),
  onDidChangeConfiguration: (listener: Listener) => editor.listen("configuration", listener),
  onDidGrantWorkspaceTrust: (listener: Listener) => editor.listen("trust", listener),
  registerTextDocumentContentProvider(scheme: string, provider: { provideTextDocumentContent(): string }) {
    editor.providers.set(scheme, provider);
    return disposable;
  },
  async applyEdit(edit: unknown): Promise<boolean> {
    editor.applied.push(edit);
    return true;
  },
  async openTextDocument(options: { content: string }): Promise<unknown> {
    return { ...options, positionAt: (offset: number) => offset };
  },
  fs: {
    readFile: async (uri: Uri) => new TextEncoder().encode(`text of ${uri.fsPath}`),
    writeFile: async (uri: Uri) => void editor.written.push(uri.fsPath),
  },
  get workspaceFolders() {
    return editor.folders;
  },
  get isTrusted() {
    return editor.trusted;
  },
};
