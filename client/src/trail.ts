// While the cursor is on a finding, the lines that lead to it are tinted; the palette learns what is here.

import {
  commands,
  type Diagnostic,
  type Disposable,
  languages,
  OverviewRulerLane,
  Range,
  type TextEditor,
  ThemeColor,
  window,
} from "vscode";

const PAUSE_MILLISECONDS = 120;
const CELL = /^#[ \t]*%%/m;

export class Trail implements Disposable {
  private readonly tint = window.createTextEditorDecorationType({
    isWholeLine: true,
    backgroundColor: new ThemeColor("editor.wordHighlightBackground"),
    // Themes of high contrast have a border instead of a background; in others this colour is not there.
    borderStyle: "dotted",
    borderWidth: "1px",
    borderColor: new ThemeColor("editor.wordHighlightBorder"),
    overviewRulerColor: new ThemeColor("editorOverviewRuler.wordHighlightForeground"),
    overviewRulerLane: OverviewRulerLane.Center,
  });
  private waiting: NodeJS.Timeout | undefined;
  private readonly subscriptions = [
    window.onDidChangeTextEditorSelection(() => this.soon()),
    window.onDidChangeActiveTextEditor(() => this.soon()),
    languages.onDidChangeDiagnostics(() => this.soon()),
    this.tint,
  ];

  dispose(): void {
    clearTimeout(this.waiting);
    for (const subscription of this.subscriptions) subscription.dispose();
  }

  /** Tint what belongs to the finding at the cursor, in every editor in sight. */
  show(): void {
    const active = window.activeTextEditor;
    const finding = active === undefined ? undefined : findingAt(active);
    void commands.executeCommand("setContext", "gradsight.onFinding", finding !== undefined);
    const hasCells = active !== undefined && CELL.test(active.document.getText());
    void commands.executeCommand("setContext", "gradsight.hasCells", hasCells);
    for (const editor of window.visibleTextEditors) {
      const uri = editor.document.uri.toString();
      const steps = (finding?.relatedInformation ?? []).filter(
        ({ location }) => location.uri.toString() === uri,
      );
      const lines = new Set(steps.map(({ location }) => location.range.start.line));
      editor.setDecorations(
        this.tint,
        [...lines].map((line) => new Range(line, 0, line, 0)),
      );
    }
  }

  private soon(): void {
    clearTimeout(this.waiting);
    this.waiting = setTimeout(() => this.show(), PAUSE_MILLISECONDS);
  }
}

function findingAt({ document, selection }: TextEditor): Diagnostic | undefined {
  const { line } = selection.active;
  return languages
    .getDiagnostics(document.uri)
    .find(
      ({ source, range }) => source === "gradsight" && range.start.line <= line && line <= range.end.line,
    );
}
