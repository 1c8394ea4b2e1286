//! What a server does for its operator, between two looks at its sockets.

use super::Server;
use crate::clock::unix_millis;
use crate::control::{Control, Desk, Operator};
use crate::metrics::Health;

impl Server {
    /// Answers those who ask for metrics, and the service manager.
    pub(super) fn tell_operator(&mut self) {
        let now = self.clock.now();
        self.notifier.turn(now, self.game.players(), self.meter.max_players);
        let health = match self.stopping {
            Some(_) => Health::Stopping,
            None if self.meter.tally.ticks == 0 || !self.game.is_ready() => Health::Starting,
            None => Health::Ready,
        };
        let (game, meter, kept) = (&self.game, &self.meter, &self.kept);
        let (unsent, unread) = (self.unsent.count(), self.unread.count());
        if let Some(endpoint) = &mut self.endpoint {
            endpoint.turn(now, health, || {
                let store = kept.as_ref().map(|kept| kept.figures(game));
                meter.figures(game, store, unsent, unread).text()
            });
        }
    }

    /// Does what operators ask for.
    pub(super) fn operate(&mut self) {
        self.is_over = self.with_desk(|operator, control, desk| {
            if let Some(control) = control {
                control.turn(operator, desk);
            }
            operator.turn(desk)
        });
        self.meter.max_players = self.operator.config().session.max_players;
        if let Some(bans) = self.operator.take_changed_bans()
            && let Some(kept) = &mut self.kept
        {
            kept.keep_bans(bans);
            // They are few, and somebody wants to be rid of somebody for good.
            self.game.ask_save();
        }
    }

    /// Reads the configuration again. What came of it is in the log.
    pub(super) fn reload(&mut self) {
        self.notifier.reloading();
        let _ = self.with_desk(|operator, _, desk| operator.reload(desk));
        self.notifier.ready(self.clock.now());
    }

    fn with_desk<T>(
        &mut self,
        work: impl FnOnce(&mut Operator, Option<&mut Control>, &mut Desk<'_>) -> T,
    ) -> T {
        let now = self.clock.now();
        let mut desk = Desk {
            game: &mut self.game,
            kept: self.kept.as_ref(),
            now,
            unix_s: unix_millis() / 1000,
            uptime: now.saturating_since(self.started),
            sent: self.sent,
            unsent: self.unsent.count(),
            unread: self.unread.count(),
        };
        work(&mut self.operator, self.control.as_mut(), &mut desk)
    }
}
