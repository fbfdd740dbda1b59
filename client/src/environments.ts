// The interpreter that a folder's code runs with: what an extension for Python has chosen, what is set, or what lies there.

import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { setTimeout as rest } from "node:timers/promises";
import type { PythonEnvironmentApi } from "@vscode/python-environments";
import type { PythonExtension } from "@vscode/python-extension";
import {
  type Disposable,
  EventEmitter,
  extensions,
  type LogOutputChannel,
  type Uri,
  workspace,
} from "vscode";
import { expandPath, type Surroundings } from "./expansion";
import { namesOnPath } from "./python";

/** How an extension is asked for the interpreter of a folder, and how it tells of another choice. */
interface Source {
  readonly name: string;
  interpreter(scope: Uri | undefined): Promise<string | undefined>;
  onChange(listener: () => void): Disposable;
}

// No extension for Python is required: these are asked only where they are installed.
const ENVIRONMENTS = "ms-python.vscode-python-envs";
const PYTHON = "ms-python.python";
const PATIENCE_MILLISECONDS = 5_000;

/** Finds interpreters, and tells when the answer may be another one. */
export class Environments implements Disposable {
  private readonly changed = new EventEmitter<void>();
  readonly onDidChange = this.changed.event;
  private readonly subscriptions: Disposable[] = [this.changed];
  private sources: Promise<Source[]> | undefined;

  constructor(private readonly log: LogOutputChannel) {
    this.subscriptions.push(extensions.onDidChange(() => this.lookAgain()));
  }

  /** The interpreter for a folder: a path, or a name on the PATH. */
  async interpreterFor(folder: Uri | undefined): Promise<string> {
    for (const source of await this.known()) {
      try {
        const path = await source.interpreter(folder);
        if (path !== undefined && path !== "") return path;
      } catch (error) {
        this.log.warn(`${source.name} does not tell its interpreter: ${error}`);
      }
    }
    return setIn(folder)[0] ?? this.lyingIn(folder) ?? onPath()[0] ?? "python3";
  }

  /** Everything that may run the server, the most specific first. */
  async candidates(): Promise<string[]> {
    const folder = workspace.workspaceFolders?.[0]?.uri;
    return [await this.interpreterFor(folder), ...setIn(folder), ...onPath()];
  }

  dispose(): void {
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** An environment in the folder itself; nothing of an untrusted workspace is ever run. */
  private lyingIn(folder: Uri | undefined): string | undefined {
    if (folder === undefined || !workspace.isTrusted) return undefined;
    const program = process.platform === "win32" ? ["Scripts", "python.exe"] : ["bin", "python"];
    return [".venv", "venv"].map((name) => join(folder.fsPath, name, ...program)).find(existsSync);
  }

  private known(): Promise<Source[]> {
    this.sources ??= this.ask();
    return this.sources;
  }

  private lookAgain(): void {
    this.sources = undefined;
    this.changed.fire();
  }

  private async ask(): Promise<Source[]> {
    const sources: Source[] = [];
    const environments = await this.exportsOf<PythonEnvironmentApi>(ENVIRONMENTS);
    if (environments !== undefined) sources.push(fromEnvironments(environments));
    const python = await this.exportsOf<PythonExtension>(PYTHON);
    if (python?.environments !== undefined) sources.push(fromPython(python));
    for (const source of sources) this.subscriptions.push(source.onChange(() => this.changed.fire()));
    return sources;
  }

  /** What an extension offers.  One that takes its time is not waited for; once it is there, all is asked again. */
  private async exportsOf<Api>(id: string): Promise<Api | undefined> {
    const extension = extensions.getExtension<Api>(id);
    if (extension === undefined) return undefined;
    const late = rest(PATIENCE_MILLISECONDS, undefined, { ref: false });
    try {
      const started = extension.activate();
      const api = await Promise.race([started, late]);
      if (api === undefined && !extension.isActive)
        void Promise.allSettled([started]).then(() => this.lookAgain());
      return api;
    } catch (error) {
      this.log.warn(`${id} does not start: ${error}`);
      return undefined;
    }
  }
}

/** What the meaning of a path in the settings of a folder depends on. */
export function surroundingsOf(folder: Uri | undefined): Surroundings {
  const around = folder ?? workspace.workspaceFolders?.[0]?.uri;
  return { workspaceFolder: around?.fsPath, home: homedir(), env: process.env };
}

/** What the user has set, if anything. */
function setIn(folder: Uri | undefined): string[] {
  const set = workspace.getConfiguration("gradsight", folder).get<string>("interpreter", "");
  return set.trim() === "" ? [] : [expandPath(set, surroundingsOf(folder))];
}

function onPath(): string[] {
  return namesOnPath(process.platform === "win32");
}

function fromEnvironments(api: PythonEnvironmentApi): Source {
  return {
    name: ENVIRONMENTS,
    interpreter: async (scope) => (await api.getEnvironment(scope))?.execInfo?.run?.executable,
    onChange: (listener) => api.onDidChangeEnvironment(listener),
  };
}

function fromPython({ environments }: PythonExtension): Source {
  return {
    name: PYTHON,
    async interpreter(scope) {
      const active = environments.getActiveEnvironmentPath(scope);
      // Nobody has chosen anything: it would name whatever `python` is.
      if (active.id === "DEFAULT_PYTHON") return undefined;
      return (await environments.resolveEnvironment(active))?.executable?.uri?.fsPath;
    },
    onChange: (listener) => environments.onDidChangeActiveEnvironmentPath(listener),
  };
}
