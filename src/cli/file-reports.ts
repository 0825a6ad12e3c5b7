import type { ExportOptions } from '../export/options.ts';
import type { StatusLine } from './status-line.ts';

/** Problems and rejects named on stderr. */
const NAMED = 20;

/** What a command says on stderr while it turns the files of an archive into rows. */
export function fileReports(
  status: StatusLine,
): Pick<ExportOptions, 'onProgress' | 'onProblem' | 'onReject'> {
  const name = status.atMost(NAMED);
  return {
    onProgress: ({ done, total, records, file }) =>
      status.show(
        () => `${done}/${total} files, ${records} records${status.pace(done, total, records)}: ${file}`,
        done === total,
      ),
    onProblem: (file, line, reason) => name(`${file}${line === null ? '' : `:${line}`}: ${reason}`),
    onReject: ({ file, line, table, code, reason }) => name(`${file}:${line}: ${table}: ${code}: ${reason}`),
  };
}
