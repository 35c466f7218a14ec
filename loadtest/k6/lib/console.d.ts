// What k6 has of a browser's console; its types leave it to the DOM's.
declare const console: Record<'debug' | 'info' | 'warn' | 'error', (...data: unknown[]) => void>;
