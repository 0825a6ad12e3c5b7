import { EXIT } from '../core/errors.ts';
import type { Changes } from '../export/new-files.ts';
import type { ExportOptions } from '../export/options.ts';
import { note, type Io } from './io.ts';
import type { StatusLine } from './status-line.ts';

/** `file:line`, or the file alone. */
export function placed(file: string, line: number | null): string {
  return line === null ? file : `${file}:${line}`;
}

/** Progress and problems on stderr, for commands that make rows of archives. */
export function fileReports(
  status: StatusLine,
): Pick<ExportOptions, 'onProgress' | 'onProblem' | 'onReject'> {
  const name = status.atMost();
  return {
    onProgress: ({ done, total, records, file }) =>
      status.show(
        () => `${done}/${total} files, ${records} records${status.pace(done, total, records)}: ${file}`,
        done === total,
      ),
    onProblem: (file, line, reason) => name(`${placed(file, line)}: ${reason}`),
    onReject: ({ file, line, table, code, reason }) => name(`${file}:${line}: ${table}: ${code}: ${reason}`),
  };
}

/** A line of a summary; none when the count is 0. */
export function some(count: number, what: string): string[] {
  return count > 0 ? [`${count} ${what}`] : [];
}

/** Reports files that a list of an export leaves out; with missing files the command ends with 3. */
export function reportLost({ lost, leftOut }: Changes, io: Io): void {
  for (const file of lost) note(io, `${file}: gone: erased, replaced a moment ago, or lost; export again`);
  if (leftOut !== null) note(io, `step ${leftOut} is left out: not all of its files are there yet`);
  if (lost.length > 0) io.setExit(EXIT.partial);
}
