// The entry among the language statuses: what the server is doing, and which Python and torch a probe would use.

import { type Disposable, type DocumentSelector, LanguageStatusSeverity, languages } from "vscode";

/** What the server is doing. */
export type State = "starting" | "ready" | "probing" | "error" | "off";

/** The interpreter of the open file, as the server found it. */
export interface Environment {
  readonly python: string;
  readonly version: string;
  readonly torch: string;
  /** How much of the file was left out: `2 of 31 functions not analysed`. */
  readonly notAnalysed?: string;
}

const WORDS: Record<State, string> = {
  starting: "GradSight is starting",
  ready: "GradSight",
  probing: "GradSight is running your code",
  error: "GradSight does not run",
  off: "GradSight is switched off",
};

export class Status implements Disposable {
  private readonly item;
  private environment = "";

  constructor(selector: DocumentSelector) {
    this.item = languages.createLanguageStatusItem("gradsight.status", selector);
    this.item.name = "GradSight";
    this.show("starting");
  }

  /** Show a state; an error says its reason. */
  show(state: State, problem = ""): void {
    this.item.text = WORDS[state];
    this.item.busy = state === "starting" || state === "probing";
    this.item.severity =
      state === "error" ? LanguageStatusSeverity.Error : LanguageStatusSeverity.Information;
    this.item.detail = state === "error" ? problem : this.environment;
    this.item.command =
      state === "error"
        ? { title: "Restart Server", command: "gradsight.restart" }
        : state === "probing"
          ? { title: "Cancel Run", command: "gradsight.probe.cancel" }
          : { title: "Show Logs", command: "gradsight.showLogs" };
  }

  /** Tell which interpreter a probe would use. */
  tell({ python, version, torch, notAnalysed }: Environment): void {
    const words = [`Python ${version}`, torch ? `torch ${torch}` : "no torch", shortened(python)];
    const interpreter = version === "" ? `${python} cannot be run` : words.join(" · ");
    this.environment = notAnalysed ? `${interpreter} · ${notAnalysed}` : interpreter;
    if (this.item.severity !== LanguageStatusSeverity.Error) this.item.detail = this.environment;
  }

  dispose(): void {
    this.item.dispose();
  }
}

/** The name of an environment instead of the long path of its interpreter. */
function shortened(python: string): string {
  const [, name] = /([^\\/]+)[\\/](?:bin|Scripts)[\\/][^\\/]+$/.exec(python) ?? [];
  return name === undefined || ["usr", "local", ""].includes(name) ? python : name;
}
