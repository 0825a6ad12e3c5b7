import type { KeyNote, KeyNotes, NamedKey } from '../../src/seal/place-witness.ts';

/** Notes that lie in memory, for any number of readers. */
export class MadeUpNotes {
  readonly all: KeyNote[] = [];
  /** What the newest records name. */
  newest: NamedKey[] = [];
  /** Whoever keeps the notes does not answer. */
  isSilent = false;
  writing = (): Promise<void> => Promise.resolve();

  reader(): KeyNotes {
    let at = 0;
    const end = Promise.withResolvers<never>();
    end.promise.catch(() => undefined);
    return {
      where: 'topic made-up',
      read: () => {
        if (this.isSilent) return end.promise;
        const fresh = this.all.slice(at);
        at = this.all.length;
        return Promise.resolve(fresh);
      },
      write: async (note) => {
        await this.writing();
        this.all.push(note);
      },
      newest: () => Promise.resolve(this.newest),
      end: () => end.reject(new Error('stopped')),
    };
  }
}
