// What is said to the user aloud: each distinct problem once; the log has it every time.

import { commands, type LogOutputChannel, window } from "vscode";

export class Notices {
  private readonly said = new Set<string>();

  constructor(private readonly log: LogOutputChannel) {}

  /** Say a problem, with buttons that lead on. */
  problem(text: string): void {
    this.log.error(text);
    if (this.said.has(text)) return;
    this.said.add(text);
    const buttons = ["Restart Server", "Open Settings", "Show Logs"];
    void window.showErrorMessage(`GradSight ${text}`, ...buttons).then((answer) => this.follow(answer));
  }

  /** Things work again: the next problem is news, even if it is an old one. */
  forget(): void {
    this.said.clear();
  }

  private follow(answer: string | undefined): Thenable<unknown> | undefined {
    if (answer === "Open Settings")
      return commands.executeCommand("workbench.action.openSettings", "gradsight");
    if (answer === "Restart Server") return commands.executeCommand("gradsight.restart");
    if (answer === "Show Logs") this.log.show();
    return undefined;
  }
}
