import { EXIT } from '../core/errors.ts';
import type { Changes } from '../export/new-files.ts';
import type { ExportOptions } from '../export/options.ts';
import { note, type Io } from './io.ts';
import type { StatusLine } from './status-line.ts';

/** The place of a line, or of a whole file. */
export function placed(file: string, line: number | null): string {
  return line === null ? file : `${file}:${line}`;
}

/** What a command says on stderr while it turns the files of an archive into rows. */
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

/** Says on stderr what a list of an export's files leaves out, and by the exit code that files are gone. */
export function tellLost({ lost, leftOut }: Changes, io: Io): void {
  for (const file of lost) note(io, `${file}: gone: erased, replaced a moment ago, or lost; export again`);
  if (leftOut !== null) note(io, `step ${leftOut} is left out: not all of its files are there yet`);
  if (lost.length > 0) io.setExit(EXIT.partial);
}
