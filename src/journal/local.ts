/** What of a config says where events wait. */
export interface Waiting {
  readonly acknowledge: string;
  readonly journal: { readonly type: string };
}

/** Whether events wait on the disk of this machine. */
export function isLocal({ acknowledge, journal }: Waiting): boolean {
  return acknowledge === 'journaled' && journal.type === 'local';
}

/** The name of a journal's database, in its folder. */
export const DATABASE = 'journal.db';
