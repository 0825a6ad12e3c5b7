import { leftItemOf, Owners, type ErasureRun } from '../../core/erasure.ts';
import { IdSearch } from './id-search.ts';
import { LineOwners, type EnvelopeFields } from './file-kinds.ts';

/** One run of an erasure in one place: what it looks for, and how it reports what it leaves. */
export class PlaceRun {
  /** For receipts: the place as the config has it. */
  readonly name: string;
  readonly run: ErasureRun;
  readonly search: IdSearch;
  readonly owners: LineOwners;

  constructor(name: string, run: ErasureRun, fields: EnvelopeFields) {
    this.name = name;
    this.run = run;
    this.search = new IdSearch(run.subjects);
    this.owners = new LineOwners(new Owners(run.subjects), fields);
  }

  /** Reports an item that these requests wait for; without requests it stands on all receipts of the run. */
  leave(item: string, requests: readonly string[], reason: string): void {
    this.run.leave({ store: this.name, item, requests, reason });
  }

  /** Reports an error; all requests wait for its item. */
  leaveFailed(item: string, error: unknown): void {
    this.run.leave(leftItemOf(this.name, item, this.run.subjects, error));
  }
}
