import { writeState } from '../lib/work-folder.ts';
import type { ServiceClient } from '../service/client.ts';
import { DONE } from './pull-meals.ts';
import { pullReference, type PullSummary } from './reference.ts';

const NOTHING = { users: [], zipCodes: [], labTests: [], addOns: [], jobs: [], labs: [] };

export interface JobPull {
  readonly job: string;
  /** Columns of every row that the answer does not fill. */
  readonly given: Readonly<Record<string, string>>;
  /** Milliseconds since the epoch. */
  readonly now: number;
}

/** Fetches one parsing job and leaves its rows, and that it is done, in a folder: all of it or nothing. */
export async function pullParsingJob(
  service: ServiceClient,
  { job, given, now }: JobPull,
  folder: string,
  signal: AbortSignal,
): Promise<PullSummary> {
  const resource = {
    table: 'parsing_jobs',
    fetch: () =>
      async function* () {
        let text = '';
        await service.labs.parsingJob(job, { signal, onText: (written) => (text = written) });
        yield { text: `[${text}]`, given };
      },
  };
  const summary = await pullReference(service, resource, {
    query: NOTHING,
    output: folder,
    now,
    signal,
  });
  await writeState(folder, DONE, summary);
  return summary;
}
