import type { CallOptions } from './options.ts';
import { ManagementGroup, type List, type Unknown } from './shape.ts';

export interface Team extends Unknown {
  readonly id: string;
}

export class Management extends ManagementGroup {
  /** Those that the key reaches. */
  teams(options: CallOptions = {}): Promise<List<Team>> {
    return this.managedList<Team>({ method: 'GET', path: 'teams' }, options);
  }
}
