// Stand-ins for the two extensions that choose interpreters.  The compiler holds them to the published interfaces.

import type { PythonEnvironment, PythonEnvironmentApi } from "@vscode/python-environments";
import type { EnvironmentPath, PythonExtension, ResolvedEnvironment } from "@vscode/python-extension";
import type { Uri } from "vscode";
import { EventEmitter, Uri as FakeUri } from "./fake-vscode";

type Events<Api, Name extends keyof Api> = Api[Name] extends (
  listener: (event: infer E) => unknown,
) => unknown
  ? EventEmitter<E>
  : never;

/** What the Python Environments extension exports: the environment of a project, and word of another choice. */
export class FakeEnvironments
  implements Pick<PythonEnvironmentApi, "getEnvironment" | "onDidChangeEnvironment">
{
  readonly asked: (string | undefined)[] = [];
  private readonly changed: Events<PythonEnvironmentApi, "onDidChangeEnvironment"> = new EventEmitter();
  readonly onDidChangeEnvironment = this.changed.event;

  constructor(private chosen: string | undefined) {}

  async getEnvironment(scope: Uri | undefined): Promise<PythonEnvironment | undefined> {
    this.asked.push(scope?.fsPath);
    return this.chosen === undefined ? undefined : environmentAt(this.chosen);
  }

  /** The user chooses another one. */
  choose(path: string): void {
    this.chosen = path;
    this.changed.fire({ uri: undefined, old: undefined, new: environmentAt(path) });
  }
}

type PythonEnvironments = Pick<
  PythonExtension["environments"],
  "getActiveEnvironmentPath" | "resolveEnvironment" | "onDidChangeActiveEnvironmentPath"
>;

/** What the Python extension exports: a path that may be anything, and what it turns out to be. */
export class FakePythonExtension {
  private readonly changed: Events<PythonEnvironments, "onDidChangeActiveEnvironmentPath"> =
    new EventEmitter();
  readonly environments: PythonEnvironments = {
    getActiveEnvironmentPath: () => this.active,
    resolveEnvironment: async () => resolvedAt(this.active.path),
    onDidChangeActiveEnvironmentPath: this.changed.event,
  };

  constructor(private active: EnvironmentPath) {}

  /** The user chooses another one. */
  choose(path: string): void {
    this.active = { id: path, path };
    this.changed.fire({ ...this.active, resource: undefined });
  }
}

function environmentAt(path: string): PythonEnvironment {
  return {
    envId: { id: path, managerId: "ms-python.python:venv" },
    name: "chosen",
    displayName: "chosen (3.12)",
    displayPath: path,
    version: "3.12.1",
    environmentPath: FakeUri.file(path) as unknown as Uri,
    execInfo: { run: { executable: path } },
    sysPrefix: "/envs",
  };
}

function resolvedAt(path: string): ResolvedEnvironment {
  return {
    id: path,
    path,
    executable: { uri: FakeUri.file(path) as unknown as Uri, bitness: "64-bit", sysPrefix: "/envs" },
    environment: undefined,
    tools: [],
    version: {
      major: 3,
      minor: 12,
      micro: 1,
      release: { level: "final", serial: 0 },
      sysVersion: "3.12.1",
    },
  };
}
